package dev.tutti.runtime.events;

import dev.tutti.spi.Call;
import jdk.jfr.Category;
import jdk.jfr.Description;
import jdk.jfr.Label;
import jdk.jfr.Name;
import jdk.jfr.StackTrace;
import jdk.jfr.Timespan;

/** A collective operation, from its issue to its end on this rank. */
@Name("dev.tutti.Operation")
@Label("Collective")
@Category("Tutti")
@Description("A collective operation of one rank, from its issue to its end")
@StackTrace(false)
final class OperationEvent extends CallEvent {
  @Label("Time Queued")
  @Description("How long it waited for its turn in the group")
  @Timespan(Timespan.NANOSECONDS)
  long queued;

  @Override
  void take(Call call, long queuedNanos) {
    queued = queuedNanos;
  }
}
