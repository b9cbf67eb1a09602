package dev.tutti.runtime.events;

import jdk.jfr.Category;
import jdk.jfr.Description;
import jdk.jfr.Event;
import jdk.jfr.Label;
import jdk.jfr.Name;
import org.jspecify.annotations.Nullable;

/** A change in the life of a group. */
@Name("dev.tutti.Group")
@Label("Group")
@Category("Tutti")
@Description("A group was created, failed or was closed on this rank")
final class GroupEvent extends Event {
  @Label("Group")
  @Nullable String group;

  @Label("Rank")
  int rank;

  @Label("Size")
  int size;

  @Label("Backends")
  @Nullable String backends;

  @Label("State")
  @Nullable String state;

  @Label("Why")
  @Nullable String why;
}
