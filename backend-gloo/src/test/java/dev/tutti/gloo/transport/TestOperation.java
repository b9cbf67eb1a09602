package dev.tutti.gloo.transport;

import dev.tutti.OpType;
import dev.tutti.Tensor;
import dev.tutti.TuttiException;
import dev.tutti.spi.Call;
import dev.tutti.spi.DeviceEvent;
import dev.tutti.spi.Operation;
import dev.tutti.spi.Time;
import java.time.Duration;
import java.util.List;

/** An operation without a group. */
public final class TestOperation implements Operation {
  private record End(Throwable cause, int rank) {}

  private final Call call = new Call(OpType.RECV);
  private final Time time;
  private final long deadline;
  private volatile End end;
  private volatile Runnable beforeEnd = () -> {};

  /**
   * Creates an operation.
   *
   * @param timeout the timeout, starting now
   */
  public TestOperation(Duration timeout) {
    this(Time.SYSTEM, timeout);
  }

  /**
   * Creates an operation that waits in the time of a simulation.
   *
   * @param time the time
   * @param timeout the timeout, starting now
   */
  TestOperation(Time time, Duration timeout) {
    this.time = time;
    deadline = time.deadline(timeout);
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
    return end.cause();
  }

  /** Returns the source, or the rank to blame. */
  int rank() {
    return end.rank();
  }

  private void end(Throwable cause, int rank) {
    beforeEnd.run();
    synchronized (this) {
      if (end == null) {
        end = new End(cause, rank);
        notifyAll();
      }
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
    return end != null;
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
    End ended = end;
    return ended == null || ended.cause() == null
        ? null
        : new TuttiException("failed", ended.cause());
  }

  @Override
  public synchronized boolean parkUntilDone(long deadlineNanos) {
    try {
      while (end == null && deadlineNanos - time.nanoTime() > 0) {
        time.await(this, deadlineNanos - time.nanoTime());
      }
      return end != null;
    } catch (InterruptedException e) {
      throw new AssertionError(e);
    }
  }
}
