package dev.tutti.fake;

import dev.tutti.OpType;
import dev.tutti.Tensor;
import dev.tutti.TuttiException;
import dev.tutti.spi.Call;
import dev.tutti.spi.DeviceEvent;
import dev.tutti.spi.Operation;
import dev.tutti.spi.Time;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.locks.LockSupport;

/** An operation without a group. */
final class TestOperation implements Operation {
  private final Call call;
  private final long sequence;
  private final Time time;
  private final long deadlineNanos;
  private final CompletableFuture<List<Tensor>> end = new CompletableFuture<>();
  volatile int source = -1;
  volatile int failedRank = -2;

  TestOperation(OpType type, long sequence, Duration timeout) {
    this(type, sequence, timeout, Time.SYSTEM);
  }

  TestOperation(OpType type, long sequence, Duration timeout, Time time) {
    this.time = time;
    this.call = new Call(type);
    this.sequence = sequence;
    this.deadlineNanos = time.nanoTime() + timeout.toNanos();
  }

  @Override
  public Call call() {
    return call;
  }

  @Override
  public long sequenceNumber() {
    return sequence;
  }

  @Override
  public long deadlineNanos() {
    return deadlineNanos;
  }

  @Override
  public boolean isDone() {
    return end.isDone();
  }

  @Override
  public void complete() {
    end.complete(List.of());
  }

  @Override
  public void completeFrom(int sourceRank) {
    source = sourceRank;
    end.complete(List.of());
  }

  @Override
  public void completeWith(List<Tensor> result) {
    end.complete(result);
  }

  @Override
  public void fail(Throwable cause, int rank) {
    failedRank = rank;
    end.completeExceptionally(cause);
  }

  @Override
  public void enqueued(DeviceEvent event) {
    throw new AssertionError("not stream-ordered");
  }

  @Override
  public void throwIfFailed() {
    TuttiException failure = failure();
    if (failure != null) {
      throw failure;
    }
  }

  @Override
  public TuttiException failure() {
    return end.isCompletedExceptionally() ? new TuttiException("failed", end.exceptionNow()) : null;
  }

  @Override
  public boolean parkUntilDone(long deadline) {
    Thread waiter = Thread.currentThread();
    var _ = end.whenComplete((result, failure) -> LockSupport.unpark(waiter));
    while (!end.isDone()) {
      long left = deadline - time.nanoTime();
      if (left <= 0) {
        return false;
      }
      time.park(this, left);
    }
    return true;
  }

  /**
   * Waits until the operation ends, at most until the deadline, and returns its result or throws
   * its failure.
   */
  List<Tensor> result() throws Exception {
    if (!parkUntilDone(deadlineNanos)) {
      throw new TimeoutException();
    }
    try {
      return end.get();
    } catch (ExecutionException e) {
      throw e.getCause() instanceof Exception cause ? cause : e;
    }
  }
}
