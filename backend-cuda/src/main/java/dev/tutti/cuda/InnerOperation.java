package dev.tutti.cuda;

import dev.tutti.OpType;
import dev.tutti.Tensor;
import dev.tutti.TuttiException;
import dev.tutti.spi.DeviceEvent;
import dev.tutti.spi.Operation;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Stands before an operation that one backend lets another one do a part of: keeps what that one
 * says of the end, which is none of the operation.
 */
final class InnerOperation implements Operation {
  private final Operation outer;
  private volatile @Nullable DeviceEvent event;
  private volatile @Nullable Throwable cause;
  private volatile List<Tensor> result = List.of();

  InnerOperation(Operation outer) {
    this.outer = outer;
  }

  /** Returns what follows it on the device, or null if it did nothing there. */
  @Nullable DeviceEvent event() {
    return event;
  }

  /** Returns what it ended with. */
  List<Tensor> result() {
    return result;
  }

  /** Throws what it failed with, if it did. */
  void throwIfReported() throws Exception {
    Throwable reported = cause;
    if (reported instanceof Exception e) {
      throw e;
    }
    if (reported instanceof Error e) {
      throw e;
    }
  }

  @Override
  public OpType type() {
    return outer.type();
  }

  @Override
  public long sequenceNumber() {
    return outer.sequenceNumber();
  }

  @Override
  public long deadlineNanos() {
    return outer.deadlineNanos();
  }

  @Override
  public boolean isDone() {
    return cause != null || outer.isDone();
  }

  @Override
  public void complete() {}

  @Override
  public void completeFrom(int sourceRank) {}

  @Override
  public void completeWith(List<Tensor> newResult) {
    result = newResult;
  }

  @Override
  public synchronized void fail(Throwable newCause, int failedRank) {
    if (cause == null) {
      cause = newCause;
    }
  }

  @Override
  public void enqueued(DeviceEvent newEvent) {
    event = newEvent;
  }

  @Override
  public void throwIfFailed() {
    outer.throwIfFailed();
  }

  @Override
  public @Nullable TuttiException failure() {
    return outer.failure();
  }

  @Override
  public boolean parkUntilDone(long deadlineNanos) {
    return outer.parkUntilDone(deadlineNanos);
  }
}
