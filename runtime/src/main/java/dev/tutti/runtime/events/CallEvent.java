package dev.tutti.runtime.events;

import dev.tutti.DType;
import dev.tutti.OpType;
import dev.tutti.Tensor;
import dev.tutti.WorkState;
import dev.tutti.spi.Call;
import jdk.jfr.DataAmount;
import jdk.jfr.Description;
import jdk.jfr.Event;
import jdk.jfr.Label;
import org.jspecify.annotations.Nullable;

/** The part that the events of collectives and of messages have in common. */
abstract class CallEvent extends Event implements OperationTrace {
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
  @Description("What this rank reads, or what it writes if it reads nothing")
  @DataAmount
  long bytes;

  @Label("Backend")
  @Nullable String backend;

  @Label("Path")
  @Description("The data path and the algorithm of the call")
  @Nullable String path;

  @Label("State")
  @Nullable String state;

  /** Sets the fields that only this kind of event has. */
  abstract void take(Call call, long queuedNanos);

  @Override
  public final void start() {
    begin();
  }

  @Override
  public final void end(
      String newGroup,
      int newRank,
      Call call,
      long newSequence,
      String newBackend,
      @Nullable String newPath,
      WorkState newState,
      long queuedNanos) {
    // Otherwise a reused event would keep the duration of its first use.
    end();
    if (!shouldCommit()) {
      return;
    }
    group = newGroup;
    rank = newRank;
    sequence = newSequence;
    type = call.type().label();
    DType elements = call.dtype();
    dtype = elements == null ? null : elements.label();
    bytes = elements == null ? 0 : bytes(call, elements);
    backend = newBackend;
    path = newPath;
    state = newState.name();
    take(call, queuedNanos);
    commit();
  }

  private static long bytes(Call call, DType elements) {
    if (call.type() == OpType.ALL_REDUCE_SPARSE) {
      Tensor sparse = call.input();
      return sparse.indices().byteSize() + sparse.values().byteSize();
    }
    return call.numel() * elements.byteSize();
  }
}
