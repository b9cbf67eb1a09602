package dev.tutti.runtime.events;

import dev.tutti.DType;
import dev.tutti.WorkState;
import dev.tutti.spi.Call;
import jdk.jfr.Category;
import jdk.jfr.DataAmount;
import jdk.jfr.Description;
import jdk.jfr.Event;
import jdk.jfr.Label;
import jdk.jfr.Name;
import jdk.jfr.StackTrace;
import jdk.jfr.Timespan;
import org.jspecify.annotations.Nullable;

/** A collective operation, from its issue to its end on this rank. */
@Name("dev.tutti.Operation")
@Label("Collective")
@Category("Tutti")
@Description("A collective operation of one rank, from its issue to its end")
@StackTrace(false)
final class OperationEvent extends Event implements OperationTrace {
  @Label("Group")
  @Nullable String group;

  @Label("Rank")
  int rank;

  @Label("Sequence Number")
  long sequence;

  @Label("Type")
  @Nullable String type;

  @Label("Element Type")
  @Nullable String dtype;

  @Label("Bytes")
  @Description("What this rank reads, or writes where it reads nothing")
  @DataAmount
  long bytes;

  @Label("Backend")
  @Nullable String backend;

  @Label("Path")
  @Description("Which way and algorithm it took")
  @Nullable String path;

  @Label("Time Queued")
  @Description("How long it waited for its turn in the group")
  @Timespan(Timespan.NANOSECONDS)
  long queued;

  @Label("State")
  @Nullable String state;

  @Override
  public void start() {
    begin();
  }

  @Override
  public void end(
      String newGroup,
      int newRank,
      Call call,
      long newSequence,
      String newBackend,
      @Nullable String newPath,
      WorkState newState,
      long queuedNanos) {
    if (!shouldCommit()) {
      return;
    }
    group = newGroup;
    rank = newRank;
    sequence = newSequence;
    type = call.type().label();
    DType elements = call.dtype();
    dtype = elements == null ? null : elements.label();
    bytes = elements == null ? 0 : call.numel() * elements.byteSize();
    backend = newBackend;
    path = newPath;
    queued = queuedNanos;
    state = newState.name();
    commit();
  }
}
