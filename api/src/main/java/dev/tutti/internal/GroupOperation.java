package dev.tutti.internal;

import dev.tutti.AbortedException;
import dev.tutti.CommListener.OpEvent;
import dev.tutti.OpType;
import dev.tutti.StreamBlock;
import dev.tutti.Tensor;
import dev.tutti.TuttiException;
import dev.tutti.Work;
import dev.tutti.WorkState;
import dev.tutti.spi.Backend;
import dev.tutti.spi.DeviceEvent;
import dev.tutti.spi.Operation;
import java.time.Duration;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/** Is one operation, to its user a {@link Work} and to its backend an {@link Operation}. */
final class GroupOperation implements Work, Operation {
  /*
   * The state is guarded by this object's monitor; "state" is volatile for reads without it. Whoever
   * ends the operation first moves the state to final while it holds the monitor, so that later ends
   * see it and do nothing. Before that a success runs the finisher (copies results back into the
   * caller's tensors), still inside the monitor: a waiter that sees COMPLETED sees the results, and
   * nobody else can end the operation in between. Futures complete on a thread of their own.
   *
   * The group reuses one instance for synchronous calls that stay on the caller's thread. Such an
   * instance is never handed out and has neither waiters nor a future; reset() starts a new life.
   */
  private final Group group;
  private OpType type;
  private long sequence;
  private long issuedNanos;
  private long endedNanos;
  private volatile long deadlineNanos;
  private volatile WorkState state = WorkState.QUEUED;
  private @Nullable TuttiException failure;
  private List<Tensor> result = List.of();
  private int sourceRank = -1;
  private @Nullable Runnable finisher;
  private @Nullable CompletableFuture<List<Tensor>> future;
  private volatile @Nullable DeviceEvent deviceEvent;
  private boolean waited;
  private boolean reusable;

  @Nullable Backend backend;
  @Nullable BackendCall call;
  @Nullable OpEvent event;
  long flightPlace;

  /** Calls a backend. */
  interface BackendCall {
    void run(Backend backend, Operation op) throws Exception;
  }

  GroupOperation(Group group, OpType type) {
    this.group = group;
    this.type = type;
  }

  /** Starts a life as an issued operation. */
  void issue(OpType newType, long newSequence, long nowNanos, long newDeadlineNanos) {
    type = newType;
    sequence = newSequence;
    issuedNanos = nowNanos;
    endedNanos = 0;
    deadlineNanos = newDeadlineNanos;
    failure = null;
    deviceEvent = null;
    state = WorkState.RUNNING;
  }

  void expectSource(int peer) {
    sourceRank = peer;
  }

  void markReusable() {
    reusable = true;
  }

  void setQueued() {
    state = WorkState.QUEUED;
  }

  /** Says that it starts to run; false if it ended before. */
  synchronized boolean run() {
    if (state.isFinal()) {
      return false;
    }
    state = WorkState.RUNNING;
    return true;
  }

  void prepare(List<Tensor> newResult, @Nullable Runnable newFinisher) {
    result = newResult;
    finisher = newFinisher;
  }

  long issuedNanos() {
    return issuedNanos;
  }

  @Override
  public OpType type() {
    return type;
  }

  @Override
  public OpType opType() {
    return type;
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
    return state.isFinal();
  }

  @Override
  public WorkState state() {
    pollDevice();
    return state;
  }

  @Override
  public void complete() {
    end(WorkState.COMPLETED, null, -1, null);
  }

  @Override
  public void completeFrom(int newSourceRank) {
    end(WorkState.COMPLETED, null, newSourceRank, null);
  }

  @Override
  public void completeWith(List<Tensor> newResult) {
    end(WorkState.COMPLETED, null, -1, newResult);
  }

  @Override
  public void fail(Throwable cause, int failedRank) {
    if (!isDone()) {
      group.operationFailed(this, cause, failedRank);
    }
  }

  /** Ends it without success; false if it ended before. */
  boolean endFailed(WorkState newState, TuttiException cause) {
    return end(newState, cause, -1, null);
  }

  private boolean end(
      WorkState newState,
      @Nullable TuttiException cause,
      int newSourceRank,
      @Nullable List<Tensor> newResult) {
    CompletableFuture<List<Tensor>> toComplete;
    synchronized (this) {
      if (state.isFinal()) {
        return false;
      }
      if (newState == WorkState.COMPLETED) {
        if (newResult != null) {
          result = newResult;
        }
        if (newSourceRank >= 0) {
          sourceRank = newSourceRank;
        }
        Runnable last = finisher;
        if (last != null) {
          last.run();
        }
      }
      finisher = null;
      failure = cause;
      endedNanos = System.nanoTime();
      state = newState;
      toComplete = future;
      if (waited) {
        notifyAll();
      }
    }
    if (!reusable) {
      group.operationEnded(this, newState, cause);
      if (toComplete != null) {
        completeFuture(toComplete);
      }
    }
    return true;
  }

  @Override
  public void enqueued(DeviceEvent newEvent) {
    deviceEvent = newEvent;
  }

  boolean isOnDevice() {
    return deviceEvent != null;
  }

  /** Ends it if the device is done. */
  void pollDevice() {
    DeviceEvent pending = deviceEvent;
    if (pending == null || state.isFinal()) {
      return;
    }
    try {
      if (pending.isReached()) {
        complete();
      }
    } catch (RuntimeException e) {
      fail(e, -1);
    }
  }

  @Override
  public synchronized @Nullable TuttiException failure() {
    return failure;
  }

  @Override
  public void throwIfFailed() {
    if (state.isFinal() && state != WorkState.COMPLETED) {
      TuttiException cause = failure();
      if (cause != null) {
        throw cause;
      }
    }
  }

  @Override
  public boolean parkUntilDone(long untilNanos) {
    synchronized (this) {
      waited = true;
      while (!state.isFinal()) {
        long left = untilNanos - System.nanoTime();
        if (left <= 0) {
          return false;
        }
        try {
          TimeUnit.NANOSECONDS.timedWait(this, Math.max(left, 1_000));
        } catch (InterruptedException e) {
          Thread.currentThread().interrupt();
          throw new AbortedException(
              "the wait for " + type.label() + " was interrupted; the operation goes on",
              group.describe(this, -1, -1),
              e);
        }
      }
      return true;
    }
  }

  @Override
  public Optional<TuttiException> exception() {
    pollDevice();
    return Optional.ofNullable(failure());
  }

  @Override
  public void await() {
    while (!awaitUntil(deadlineNanos + Watchdog.PERIOD_NANOS)) {
      group.checkDeadlines(System.nanoTime());
    }
    throwIfFailed();
  }

  @Override
  public boolean await(Duration timeout) {
    long limit = System.nanoTime() + Math.min(timeout.toNanos(), Long.MAX_VALUE / 4);
    boolean ended = awaitUntil(limit);
    if (ended) {
      throwIfFailed();
    }
    return ended;
  }

  private boolean awaitUntil(long untilNanos) {
    DeviceEvent pending = deviceEvent;
    if (pending != null && !isDone()) {
      pending.awaitReached(untilNanos);
      pollDevice();
      return isDone();
    }
    Backend progress = backend;
    if (type.isPointToPoint() && progress != null && !isDone()) {
      return progress.await(this, untilNanos);
    }
    return isDone() || parkUntilDone(untilNanos);
  }

  @Override
  public void synchronize() {
    DeviceEvent pending = deviceEvent;
    if (pending == null) {
      await();
      return;
    }
    throwIfFailed();
    pending.orderCurrentStream();
  }

  @Override
  public void blockCurrentStream() {
    DeviceEvent pending = deviceEvent;
    if (pending != null) {
      pending.orderCurrentStream();
      return;
    }
    // The future is asked for first: a work that has none must not leave the stream blocked.
    CompletableFuture<List<Tensor>> done = toCompletableFuture();
    StreamBlock block = group.blockStream();
    CompletableFuture<List<Tensor>> _ = done.whenComplete((tensors, error) -> block.close());
  }

  @Override
  public CompletableFuture<List<Tensor>> toCompletableFuture() {
    CompletableFuture<List<Tensor>> copy;
    boolean done;
    synchronized (this) {
      if (future == null) {
        future = new CompletableFuture<>();
      }
      copy = future;
      done = state.isFinal();
    }
    if (done) {
      completeFuture(copy);
    } else if (deviceEvent != null) {
      Watchdog.expect(System.nanoTime());
    }
    return copy;
  }

  private void completeFuture(CompletableFuture<List<Tensor>> target) {
    group.runCallback(
        () -> {
          TuttiException cause = failure();
          if (cause == null) {
            target.complete(result);
          } else {
            target.completeExceptionally(cause);
          }
        });
  }

  @Override
  public synchronized List<Tensor> result() {
    if (state != WorkState.COMPLETED) {
      throw new IllegalStateException(
          type.label() + " #" + sequence + " is " + state + ", it has no result");
    }
    return result;
  }

  @Override
  public synchronized int sourceRank() {
    if (type != OpType.RECV && type != OpType.RECV_ANY_SOURCE) {
      throw new IllegalStateException(type.label() + " is no receive, it has no source rank");
    }
    if (state != WorkState.COMPLETED) {
      throw new IllegalStateException(
          type.label() + " #" + sequence + " is " + state + ", its source is not known");
    }
    return sourceRank;
  }

  @Override
  public Duration duration() {
    long end = endedNanos;
    return Duration.ofNanos((end == 0 ? System.nanoTime() : end) - issuedNanos);
  }

  @Override
  public void abort() {
    if (!isDone()) {
      group.abort(type.label() + " #" + sequence + " was aborted by its work");
    }
  }
}
