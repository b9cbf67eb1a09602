package dev.tutti.runtime.events;

import jdk.jfr.Category;
import jdk.jfr.Description;
import jdk.jfr.Event;
import jdk.jfr.Label;
import jdk.jfr.Name;
import jdk.jfr.Threshold;
import org.jspecify.annotations.Nullable;

/** A store call that took long although it does not wait for any other rank. */
@Name("dev.tutti.StoreCall")
@Label("Store Call")
@Category("Tutti")
@Description("A slow store call that does not wait for another rank")
@Threshold("20 ms")
final class StoreCallEvent extends Event {
  @Label("Call")
  @Nullable String call;

  @Label("Key")
  @Nullable String key;
}
