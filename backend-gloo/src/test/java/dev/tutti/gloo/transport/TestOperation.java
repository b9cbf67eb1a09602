package dev.tutti.gloo.transport;

import dev.tutti.OpType;
import dev.tutti.Tensor;
import dev.tutti.TuttiException;
import dev.tutti.spi.Call;
import dev.tutti.spi.DeviceEvent;
import dev.tutti.spi.Operation;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;

/** An operation without a group. */
public final class TestOperation implements Operation {
  private record End(Throwable cause, int rank) {}

  private final Call call = new Call(OpType.RECV);
  private final long deadline;
  private final AtomicReference<End> end = new AtomicReference<>();
  private final CountDownLatch done = new CountDownLatch(1);
  private volatile Runnable beforeEnd = () -> {};

  /**
   * Creates an operation.
   *
   * @param timeout the timeout, starting now
   */
  public TestOperation(Duration timeout) {
    deadline = System.nanoTime() + timeout.toNanos();
  }

  static TestOperation seconds(int seconds) {
    return new TestOperation(Duration.ofSeconds(seconds));
  }

  /** Runs a task on the thread that ends this operation, before it ends. */
  void beforeEnd(Runnable task) {
    beforeEnd = task;
  }

  /** Returns the cause of failure, or null after success. */
  Throwable cause() {
    return end.get().cause();
  }

  /** Returns the source, or the rank to blame. */
  int rank() {
    return end.get().rank();
  }

  private void end(Throwable cause, int rank) {
    beforeEnd.run();
    if (end.compareAndSet(null, new End(cause, rank))) {
      done.countDown();
    }
  }

  @Override
  public Call call() {
    return call;
  }

  @Override
  public long sequenceNumber() {
    return 1;
  }

  @Override
  public long deadlineNanos() {
    return deadline;
  }

  @Override
  public boolean isDone() {
    return done.getCount() == 0;
  }

  @Override
  public void complete() {
    end(null, -1);
  }

  @Override
  public void completeFrom(int sourceRank) {
    end(null, sourceRank);
  }

  @Override
  public void completeWith(List<Tensor> result) {
    end(null, -1);
  }

  @Override
  public void fail(Throwable cause, int failedRank) {
    end(cause, failedRank);
  }

  @Override
  public void enqueued(DeviceEvent event) {
    throw new AssertionError("no device here");
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
    End ended = end.get();
    return ended == null || ended.cause() == null
        ? null
        : new TuttiException("failed", ended.cause());
  }

  @Override
  public boolean parkUntilDone(long deadlineNanos) {
    try {
      return done.await(deadlineNanos - System.nanoTime(), TimeUnit.NANOSECONDS);
    } catch (InterruptedException e) {
      throw new AssertionError(e);
    }
  }
}
