package dev.tutti.runtime.operation;

import dev.tutti.CollectiveException;
import dev.tutti.FailureInfo;
import dev.tutti.OpType;
import dev.tutti.Tensor;
import dev.tutti.TuttiException;
import dev.tutti.WaitInterruptedException;
import dev.tutti.WorkState;
import dev.tutti.spi.Call;
import dev.tutti.spi.DeviceEvent;
import dev.tutti.spi.Operation;
import dev.tutti.spi.PeerLostException;
import dev.tutti.spi.Time;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.TimeoutException;
import org.jspecify.annotations.Nullable;

/** The state machine of one operation, and the operation as its backend sees it. */
public abstract class OperationState implements Operation {
  /*
   * The state is guarded by this object's monitor; "state" is volatile for reads without it. The
   * thread that ends the operation first moves the state to final while it holds the monitor, so
   * that later attempts to end it see this and do nothing. Before that, a success runs the finisher
   * (which copies results back to the caller's tensors), still inside the monitor: a waiter that
   * sees COMPLETED sees the results, and no other thread can end the operation in between.
   *
   * A failure ends the operation in two steps. fail() sets "reported", which for the backend is the
   * end: isDone() is true, parkUntilDone() returns, and a later complete() does nothing. The state
   * becomes final when the group has the first failure of all ranks, and with it what to throw.
   *
   * An instance may be issued again once it has ended; the group does this with the one that it
   * keeps for synchronous calls on the caller's thread, which is never handed out. Reading the
   * clock costs as much as a quarter of a small all-reduce in shared memory. That instance is
   * therefore timed only from when its deadline is first asked for, as by a backend that has to
   * wait; until then "deadlineNanos" is 0.
   */
  final OperationOwner owner;
  final Time time;
  private final Call call;
  private long sequence;
  private long issuedNanos;
  private long startedNanos;
  private volatile long endedNanos;
  private volatile long deadlineNanos;
  private volatile WorkState state = WorkState.QUEUED;
  private volatile @Nullable Throwable reported;
  private volatile @Nullable DeviceEvent deviceEvent;
  private @Nullable TuttiException failure;
  private List<Tensor> result;
  private int sourceRank;
  private @Nullable Runnable finisher;
  private boolean waited;
  private @Nullable String path;
  private boolean isPathCounted;

  OperationState(
      OperationOwner owner, Call call, List<Tensor> result, @Nullable Runnable finisher) {
    this.owner = owner;
    this.time = owner.identity().time();
    this.call = call;
    this.result = result;
    this.sourceRank = call.type() == OpType.RECV ? call.root() : -1;
    this.finisher = finisher;
  }

  /** Begins a use as an issued operation. */
  public final void issue(
      long newSequence, long nowNanos, long newDeadlineNanos, WorkState newState) {
    sequence = newSequence;
    issuedNanos = nowNanos;
    startedNanos = newState == WorkState.RUNNING ? nowNanos : 0;
    endedNanos = 0;
    deadlineNanos = newDeadlineNanos;
    failure = null;
    reported = null;
    deviceEvent = null;
    path = null;
    isPathCounted = false;
    state = newState;
  }

  /** Changes the number, of an operation that has not begun, or that the backend refused. */
  public final void renumber(long newSequence) {
    sequence = newSequence;
  }

  /** Begins a use as an operation that runs on this thread and is not timed yet. */
  public final void issueUntimed(long newSequence) {
    sequence = newSequence;
    // Each of these writes, if not needed, costs as much as a small copy.
    if (deadlineNanos != 0) {
      deadlineNanos = 0;
    }
    if (endedNanos != 0) {
      endedNanos = 0;
    }
    if (reported != null || deviceEvent != null) {
      reported = null;
      deviceEvent = null;
    }
    failure = null;
    path = null;
    isPathCounted = false;
    state = WorkState.RUNNING;
  }

  /** Marks the operation as running; false if it has already ended. */
  public final synchronized boolean run() {
    if (isEnded()) {
      return false;
    }
    if (state == WorkState.QUEUED) {
      startedNanos = time.nanoTime();
    }
    state = WorkState.RUNNING;
    return true;
  }

  /** Handles the end of the operation, outside of its monitor. */
  abstract void afterEnd(WorkState newState, @Nullable TuttiException cause);

  @Override
  public final Call call() {
    return call;
  }

  @Override
  public final long sequenceNumber() {
    return sequence;
  }

  @Override
  public final long deadlineNanos() {
    long deadline = deadlineNanos;
    return deadline == 0 ? startClock() : deadline;
  }

  private long startClock() {
    long now = time.nanoTime();
    long deadline = (now + owner.timeoutNanos()) | 1;
    issuedNanos = now;
    deadlineNanos = deadline;
    owner.watchdog().expect(deadline);
    return deadline;
  }

  /**
   * Returns the deadline, or 0 if the operation is not timed yet; for threads that only watch it.
   */
  final long knownDeadlineNanos() {
    return deadlineNanos;
  }

  /** Returns the tag of a message. */
  public final int tag() {
    return call.tag();
  }

  /** Returns the other rank of a message; -1 for anything else, and for a receive from any rank. */
  public final int peer() {
    return type().isPointToPoint() ? call.rootOr(-1) : -1;
  }

  /** Returns the time from issue to end, or to now; zero if the operation is not timed. */
  public final Duration duration() {
    return deadlineNanos == 0 ? Duration.ZERO : Duration.ofNanos(endNanos() - issuedNanos);
  }

  /** Returns when the operation was issued; 0 if it is not timed. */
  public final long issuedNanos() {
    return deadlineNanos == 0 ? 0 : issuedNanos;
  }

  /** Returns when the operation ended, or the current time if it has not. */
  public final long endNanos() {
    long end = endedNanos;
    return end == 0 ? time.nanoTime() : end;
  }

  /** Returns the state without polling the device. */
  public final WorkState currentState() {
    return state;
  }

  /** Returns whether the state is final. */
  public final boolean isEnded() {
    return state.isFinal();
  }

  @Override
  public final boolean isDone() {
    return isEnded() || reported != null;
  }

  @Override
  public final void complete() {
    end(WorkState.COMPLETED, null, -1, null);
  }

  @Override
  public final void completeFrom(int newSourceRank) {
    end(WorkState.COMPLETED, null, newSourceRank, null);
  }

  @Override
  public final void completeWith(List<Tensor> newResult) {
    end(WorkState.COMPLETED, null, -1, newResult);
  }

  @Override
  public final void fail(Throwable cause, int failedRank) {
    synchronized (this) {
      if (isDone()) {
        return;
      }
      report(cause);
    }
    owner.operationFailed(this, cause, failedRank);
  }

  private void report(Throwable cause) {
    reported = cause;
    if (waited) {
      notifyAll();
    }
  }

  /** Returns the failure that the backend reported through {@link #fail}, if any. */
  public final @Nullable Throwable reported() {
    return reported;
  }

  /** Ends the operation without success; false if it has already ended. */
  public final boolean endFailed(WorkState newState, TuttiException cause) {
    return end(newState, cause, -1, null);
  }

  private boolean end(
      WorkState newState,
      @Nullable TuttiException cause,
      int newSourceRank,
      @Nullable List<Tensor> newResult) {
    Throwable unfinished = null;
    synchronized (this) {
      if (isEnded() || (newState == WorkState.COMPLETED && reported != null)) {
        return false;
      }
      if (newState == WorkState.COMPLETED) {
        if (newResult != null) {
          result = newResult;
        }
        if (newSourceRank >= 0) {
          sourceRank = newSourceRank;
        }
        unfinished = finish();
        countPath();
      }
      finisher = null;
      if (unfinished == null) {
        failure = cause;
        if (deadlineNanos != 0) {
          endedNanos = time.nanoTime();
        }
        state = newState;
        if (waited) {
          notifyAll();
        }
      } else {
        report(unfinished);
      }
    }
    if (unfinished != null) {
      owner.operationFailed(this, unfinished, -1);
      return false;
    }
    afterEnd(newState, cause);
    return true;
  }

  /**
   * Runs the finisher; returns what it threw, for instance because the user freed the memory in the
   * meantime.
   */
  private @Nullable Throwable finish() {
    Runnable last = finisher;
    if (last != null) {
      try {
        last.run();
      } catch (Throwable t) {
        return t;
      }
    }
    return null;
  }

  @Override
  public final void enqueued(DeviceEvent newEvent) {
    countPath();
    deviceEvent = newEvent;
    if (type().isPointToPoint() || callerEvent() != null) {
      wakeForDevice();
    }
  }

  /**
   * Wakes threads that waited for the work to reach the device, so that they now wait for the
   * device.
   */
  private synchronized void wakeForDevice() {
    if (waited) {
      notifyAll();
    }
    if (isFollowed()) {
      owner.watchdog().expect(time.nanoTime());
    }
  }

  /** Returns whether a caller is waiting to be notified of completion. */
  boolean isFollowed() {
    return false;
  }

  @Override
  public final void took(String newPath) {
    path = newPath;
  }

  /** Returns the path that the operation took; null if its backend did not report one. */
  public final @Nullable String takenPath() {
    return path;
  }

  /** Returns when the operation got its turn; 0 if it has not had one yet. */
  public final long startedNanos() {
    return startedNanos;
  }

  /** Counts the path once, before waiters are released, so that they find it counted. */
  private void countPath() {
    String taken = path;
    if (taken != null && !isPathCounted) {
      isPathCounted = true;
      owner.countPath(taken);
    }
  }

  public final @Nullable DeviceEvent deviceEvent() {
    return deviceEvent;
  }

  /** Ends the operation if the device is done. */
  final void pollDevice() {
    DeviceEvent pending = deviceEvent;
    if (pending == null || isDone()) {
      return;
    }
    try {
      if (pending.isReached()) {
        complete();
      }
    } catch (RuntimeException | LinkageError e) {
      fail(e, -1);
    }
  }

  @Override
  public final @Nullable TuttiException failure() {
    synchronized (this) {
      if (failure != null) {
        return failure;
      }
    }
    Throwable cause = reported;
    if (cause == null || cause instanceof TuttiException) {
      return (TuttiException) cause;
    }
    int blamed = PeerLostException.rankIn(cause);
    return new CollectiveException(textOf(cause), describe(blamed, blamed), cause);
  }

  /**
   * Describes the failure of the operation.
   *
   * @param peer the other rank of a message, or -1
   * @param failedRank the rank to blame, or -1
   */
  public final FailureInfo describe(int peer, int failedRank) {
    return owner.identity().failure(type(), sequence, peer, failedRank, duration());
  }

  /**
   * Returns the message of an exception, with its class if the message alone says little. The facts
   * at the end of a collective's are left out, since another exception will add them.
   */
  public static String textOf(Throwable cause) {
    String message = cause.getMessage();
    if (cause instanceof CollectiveException known && message != null) {
      String facts = " [" + known.info().describe() + "]";
      return message.endsWith(facts)
          ? message.substring(0, message.length() - facts.length())
          : message;
    }
    if (cause instanceof TuttiException || cause instanceof TimeoutException) {
      return message == null ? cause.getClass().getSimpleName() : message;
    }
    return cause.toString();
  }

  @Override
  public final void throwIfFailed() {
    TuttiException cause = isDone() && state != WorkState.COMPLETED ? failure() : null;
    if (cause != null) {
      throw cause;
    }
  }

  @Override
  public final boolean parkUntilDone(long untilNanos) {
    return park(untilNanos, false, false);
  }

  /**
   * Parks the calling thread until the backend has done its part or a time is reached.
   *
   * @param endable whether an interrupt ends the wait
   * @throws WaitInterruptedException if it does
   */
  final boolean parkUntilEnqueued(long untilNanos, boolean endable) {
    return park(untilNanos, false, endable);
  }

  /**
   * Parks the calling thread until the state is final or a time is reached.
   *
   * @param endable whether an interrupt ends the wait
   * @throws WaitInterruptedException if it does
   */
  final boolean parkUntilEnded(long untilNanos, boolean endable) {
    return isEnded() || park(untilNanos, true, endable);
  }

  private synchronized boolean park(long untilNanos, boolean untilEnded, boolean endable) {
    boolean interrupted = false;
    waited = true;
    try {
      while (untilEnded ? !isEnded() : !isDone() && deviceEvent == null) {
        long left = untilNanos - time.nanoTime();
        if (left <= 0) {
          return false;
        }
        try {
          time.await(this, Math.max(left, 1_000));
        } catch (InterruptedException e) {
          interrupted = true;
          if (endable) {
            throw interrupted(e);
          }
        }
      }
      return true;
    } finally {
      if (interrupted) {
        Thread.currentThread().interrupt();
      }
    }
  }

  /** Throws if the calling thread is interrupted. */
  final void throwIfInterrupted() {
    if (Thread.currentThread().isInterrupted()) {
      throw interrupted(null);
    }
  }

  private WaitInterruptedException interrupted(@Nullable InterruptedException cause) {
    GroupIdentity identity = owner.identity();
    return new WaitInterruptedException(
        ("the wait of rank %d/%d for %s #%d of group %s was interrupted; the operation is still"
                + " running")
            .formatted(identity.rank(), identity.size(), type().label(), sequence, identity.name()),
        cause);
  }

  /**
   * Returns the tensors that hold the result.
   *
   * @throws IllegalStateException if the operation has not completed
   */
  public final synchronized List<Tensor> result() {
    if (state != WorkState.COMPLETED) {
      throw new IllegalStateException(
          type().label() + " #" + sequence + " is " + state + " and has no result");
    }
    return result;
  }

  /**
   * Returns the rank from which a completed receive got its data.
   *
   * @throws IllegalStateException if the operation is not a receive or has not completed
   */
  public final synchronized int sourceRank() {
    if (type() != OpType.RECV && type() != OpType.RECV_ANY_SOURCE) {
      throw new IllegalStateException(type().label() + " is not a receive and has no source rank");
    }
    if (state != WorkState.COMPLETED) {
      throw new IllegalStateException(
          type().label() + " #" + sequence + " is " + state + ", so its source is not known");
    }
    return sourceRank;
  }
}
