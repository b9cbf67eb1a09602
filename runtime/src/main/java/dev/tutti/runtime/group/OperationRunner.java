package dev.tutti.runtime.group;

import dev.tutti.CollectiveException;
import dev.tutti.CollectiveTimeoutException;
import dev.tutti.GroupListener.OpEvent;
import dev.tutti.OpType;
import dev.tutti.ReduceOp;
import dev.tutti.Tensor;
import dev.tutti.TuttiException;
import dev.tutti.WorkState;
import dev.tutti.runtime.failure.FailureEvent;
import dev.tutti.runtime.failure.Failures;
import dev.tutti.runtime.operation.BoundBackend;
import dev.tutti.runtime.operation.CollectiveQueue;
import dev.tutti.runtime.operation.FlightRecorder;
import dev.tutti.runtime.operation.GroupOperation;
import dev.tutti.runtime.operation.Listeners;
import dev.tutti.runtime.operation.MessageCounts;
import dev.tutti.runtime.operation.OperationSpec;
import dev.tutti.runtime.operation.PendingOperations;
import dev.tutti.runtime.operation.RankProgress;
import dev.tutti.spi.Call;
import dev.tutti.spi.PeerLostException;
import dev.tutti.spi.Time;
import java.lang.System.Logger.Level;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import org.jspecify.annotations.Nullable;

/** Issues the operations of a group and runs them, from the call to the end. */
final class OperationRunner {
  /*
   * Collectives take turns; messages start on their callers' threads, and "starting" counts them.
   * No operation is left in a backend once the queue has stopped and no thread has the turn, no
   * message is starting, and nothing is pending. A thread that starts a message counts it before it
   * checks whether the group is closing; the thread that closes the group announces this before it
   * reads the count. One of the two therefore sees the other.
   *
   * An operation that a thread is executing ends only when the backend has returned, so that its
   * tensors are not touched after its work has ended; other operations end at once when the group
   * fails.
   */
  private static final System.Logger LOG = System.getLogger(OperationRunner.class.getName());

  /** How many of the last operations a rank reports to the others after a time-out. */
  private static final int TOLD = 64;

  private static final long PAUSE_NANOS = TimeUnit.MICROSECONDS.toNanos(100);

  private final Group group;
  private final Failures failures;
  private final PendingOperations pending;
  private final Listeners listeners;
  private final Time time;
  private final FlightRecorder recorder;
  private final CollectiveQueue queue;
  private final GroupOperation inlineOp;
  private final OperationEvents events;
  private final boolean isNanChecked;

  private final AtomicInteger starting = new AtomicInteger();
  private final AtomicLong messages = new AtomicLong();
  private final MessageCounts counts;

  /** The first collective that was refused because the group is failing. */
  private volatile RankProgress.@Nullable Issued refused;

  OperationRunner(Group group) {
    this.group = group;
    this.failures = group.failures;
    this.pending = group.pending;
    this.listeners = group.listeners;
    this.time = group.time;
    this.recorder = group.recorder;
    this.counts = new MessageCounts(group.identity.size());
    this.queue =
        new CollectiveQueue(
            "tutti-w-" + group.identity.name() + "-" + group.identity.rank(),
            this::runQueued,
            time);
    this.inlineOp = pending.inline;
    this.events = new OperationEvents(group.identity, group.backendNames);
    this.isNanChecked = group.isNanChecked();
  }

  /**
   * Begins a synchronous collective, to be run on the caller's thread, of tensors that the backend
   * takes as they are; null if it has to take the general path. Allocates nothing; on a device,
   * nothing in the steady state.
   *
   * @param output the tensor that is written; null if there is none
   * @param input the tensor that is read; the same as the output if in place
   * @param root the root, or -1 if there is none
   */
  @Nullable GroupOperation begin(
      BoundBackend bound,
      OpType type,
      @Nullable Tensor output,
      @Nullable Tensor input,
      @Nullable ReduceOp reduceOp,
      int root) {
    return bound.isStreamOrdered()
        ? beginOnStream(type, output, input, reduceOp, root)
        : beginInline(type, output, input, reduceOp, root);
  }

  /** Ends what {@link #begin} began; throws if the operation has failed by now. */
  void end(GroupOperation op) {
    if (op == inlineOp) {
      endInline(op);
    } else {
      endOnStream(op);
    }
  }

  /** Ends what {@link #begin} began after the backend threw, and returns the exception to throw. */
  RuntimeException fail(GroupOperation op, Throwable cause) {
    return op == inlineOp ? failInline(op, cause) : failOnStream(op, cause);
  }

  /** Begins a synchronous collective on the caller's thread; null if it has to queue. */
  @Nullable GroupOperation beginInline(
      OpType type,
      @Nullable Tensor output,
      @Nullable Tensor input,
      @Nullable ReduceOp reduceOp,
      int root) {
    long sequence = tryEnterUntold(type, output, input, reduceOp, root);
    if (sequence <= 0) {
      return null;
    }
    GroupOperation op = inlineOp;
    fill(op.call().reset(type, reduceOp), output, input, root);
    op.issueUntimed(sequence);
    events.beginInline(op);
    return op;
  }

  static Call fill(Call call, @Nullable Tensor output, @Nullable Tensor input, int root) {
    call.root(root);
    if (input != null && output == input) {
      call.inPlace(input);
    } else if (input != null && output != null) {
      call.input(input).output(output);
    }
    return call;
  }

  /** Records the end of an operation that has a place in the flight record. */
  void recordEnd(GroupOperation op, WorkState state) {
    recorder.end(op.flightPlace, state, op.startedNanos(), op.endNanos(), op.takenPath());
    events.end(op, state);
  }

  /**
   * Takes the turn if it is free and no listener has to be told; returns a positive number if so.
   */
  private long tryEnterUntold(
      OpType type,
      @Nullable Tensor output,
      @Nullable Tensor input,
      @Nullable ReduceOp reduceOp,
      int root) {
    group.ensureOpen(type);
    if (failures.isFailing()) {
      refuse(fill(new Call(type).reduceOp(reduceOp), output, input, root));
    }
    return listeners.isEmpty() && !isNanChecked ? queue.tryEnter() : CollectiveQueue.TAKEN;
  }

  /**
   * Keeps, for the others, the call that a rank makes after the group began to fail, and refuses
   * it.
   */
  private void refuse(Call call) {
    if (!call.type().isPointToPoint() && refused == null) {
      refused = FlightRecorder.issued(call, queue.sequence() + 1);
    }
    failures.refuseIfFailing(call.type());
  }

  /**
   * Waits until this rank has made the call that the others found not to match, so that they learn
   * what each rank called.
   */
  void awaitCall(FailureEvent event, long limitNanos) {
    while (!event.op().isPointToPoint()
        && queue.sequence() < event.sequence()
        && refused == null
        && time.nanoTime() - limitNanos < 0) {
      time.park(this, PAUSE_NANOS);
    }
  }

  /** Ends what {@link #beginInline} began; throws if its backend reported a failure. */
  void endInline(GroupOperation op) {
    op.complete();
    if (op.currentState() != WorkState.COMPLETED) {
      throw failInline(op, op.reported());
    }
    exitInline(op, WorkState.COMPLETED);
  }

  /**
   * Ends what {@link #beginInline} began, and returns the exception to throw.
   *
   * @param cause the failure that the backend threw or reported; null if the operation was ended
   *     from outside
   */
  private RuntimeException failInline(GroupOperation op, @Nullable Throwable cause) {
    try {
      TuttiException ended = op.isEnded() ? op.failure() : null;
      if (cause == null) {
        return ended == null ? new IllegalStateException("the operation was never ended") : ended;
      }
      keepInterrupt(cause);
      if (cause instanceof UnsupportedOperationException unsupported) {
        endUnsupported(op, unsupported);
        return unsupported;
      }
      TuttiException failure = failures.of(op, cause);
      op.endFailed(Group.stateFor(failure), failure);
      throwIfSerious(cause);
      return failure;
    } finally {
      exitInline(op, WorkState.FAILED);
    }
  }

  private void exitInline(GroupOperation op, WorkState state) {
    recorder.ended(
        op.call(),
        op.sequenceNumber(),
        state,
        op.issuedNanos(),
        op.issuedNanos() == 0 ? 0 : op.endNanos(),
        op.takenPath());
    events.endInline(op, state);
    op.call().forgetTensors();
    queue.exit();
  }

  /**
   * Begins a stream-ordered collective whose work the caller does not need; null if it has to take
   * the general path. Allocates nothing in the steady state.
   */
  private @Nullable GroupOperation beginOnStream(
      OpType type,
      @Nullable Tensor output,
      @Nullable Tensor input,
      @Nullable ReduceOp reduceOp,
      int root) {
    long sequence = tryEnterUntold(type, output, input, reduceOp, root);
    if (sequence <= 0) {
      return null;
    }
    try {
      GroupOperation op = pending.onStream.next();
      long now = time.nanoTime();
      fill(op.call().reset(type, reduceOp), output, input, root);
      op.issue(sequence, now, now + group.timeoutNanos(), WorkState.RUNNING);
      op.flightPlace = recorder.issue(op.call(), sequence, WorkState.RUNNING, now);
      events.begin(op);
      pending.onStream.add();
      group.watchdog().expect(op.deadlineNanos());
      group.endIfFailed(op);
      op.throwFailure();
      return op;
    } catch (Throwable t) {
      queue.exit();
      throw t;
    }
  }

  /**
   * Ends the call that {@link #beginOnStream} began; throws if the operation has failed by now. As
   * in c10d, the host waits for the device only in a barrier. The turn stays taken during that
   * wait, so that the operation is not reissued while its caller still waits for it.
   */
  private void endOnStream(GroupOperation op) {
    try {
      settle(op);
      if (op.type() == OpType.BARRIER && op.deviceEvent() != null) {
        op.awaitUninterrupted();
      } else {
        op.throwFailure();
      }
    } finally {
      exitOnStream(op);
    }
  }

  private void exitOnStream(GroupOperation op) {
    op.call().forgetTensors();
    queue.exit();
  }

  /**
   * Ends what {@link #beginOnStream} began, and returns the exception to throw.
   *
   * @param cause the failure that the backend threw
   */
  private RuntimeException failOnStream(GroupOperation op, Throwable cause) {
    try {
      endThrown(op, cause);
      TuttiException failure = op.failure();
      return failure == null
          ? new IllegalStateException("the operation was never ended", cause)
          : op.asThrown(failure);
    } finally {
      exitOnStream(op);
    }
  }

  /** Issues an operation; if it is synchronous, it is done when this method returns. */
  GroupOperation submit(OperationSpec spec) {
    group.ensureOpen(spec.call().type());
    if (failures.isFailing()) {
      refuse(spec.call());
    }
    GroupOperation op = new GroupOperation(group, spec);
    try {
      if (op.type().isPointToPoint()) {
        startMessage(op, spec);
      } else if (spec.backend().isStreamOrdered()) {
        runStreamOrdered(op, spec);
        // As in c10d, the host waits for a barrier, but for nothing else in a stream.
        if (op.type() == OpType.BARRIER && !spec.async()) {
          awaitSynchronous(op);
        }
        return op;
      } else if (spec.async()) {
        enqueue(op, spec);
      } else {
        runOrEnqueue(op, spec);
      }
      if (!spec.async()) {
        awaitSynchronous(op);
      }
    } catch (RuntimeException | Error e) {
      if (op.sequenceNumber() == 0) {
        op.releaseCallerEvent();
      }
      throw e;
    } finally {
      OpEvent event = op.takeEndForCaller();
      if (event != null) {
        listeners.after(event, op, op.currentState(), op.failure());
      }
    }
    return op;
  }

  private void startMessage(GroupOperation op, OperationSpec spec) {
    long sequence = messages.incrementAndGet();
    issue(op, spec, sequence, WorkState.RUNNING);
    counts.started(op);
    tellBefore(op, spec, sequence, !spec.async());
    starting.incrementAndGet();
    try {
      if (group.isClosed()) {
        group.endClosed(op);
        throw group.closed(op.type());
      }
      pending.add(op);
      callToStart(op);
      group.endIfFailed(op);
    } finally {
      starting.decrementAndGet();
    }
  }

  private void callToStart(GroupOperation op) {
    try {
      op.callBackend();
    } catch (UnsupportedOperationException e) {
      endUnsupported(op, e);
      throw e;
    } catch (Throwable t) {
      op.fail(t, PeerLostException.rankIn(t));
      throwIfSerious(t);
    }
  }

  private void runOrEnqueue(GroupOperation op, OperationSpec spec) {
    long sequence = queue.tryEnter();
    if (sequence == CollectiveQueue.STOPPED) {
      throw group.closed(op.type());
    }
    if (sequence == CollectiveQueue.TAKEN) {
      refuseSelfWait(op.type());
      enqueue(op, spec);
      return;
    }
    try {
      issue(op, spec, sequence, WorkState.RUNNING);
      pending.add(op);
      tellBefore(op, spec, sequence, true);
      execute(op);
    } finally {
      queue.exit();
    }
  }

  private void enqueue(GroupOperation op, OperationSpec spec) {
    boolean hold = !listeners.isEmpty();
    boolean queued =
        queue.enqueue(
            op,
            number -> {
              issue(op, spec, number, WorkState.QUEUED);
              pending.add(op);
            },
            hold);
    if (!queued) {
      throw group.closed(op.type());
    }
    if (hold) {
      try {
        tellBefore(op, spec, op.sequenceNumber(), !spec.async());
      } finally {
        queue.release(op);
      }
    }
    if (failures.verdict() != null) {
      endQueued();
    }
  }

  private void runStreamOrdered(GroupOperation op, OperationSpec spec) {
    long deadline = deadline(spec, time.nanoTime());
    long sequence = awaitTurn(op, deadline);
    try {
      issue(op, spec, sequence, deadline, WorkState.RUNNING);
      pending.add(op);
      tellBefore(op, spec, sequence, false);
      execute(op);
    } finally {
      queue.exit();
    }
    op.throwFailure();
  }

  private long awaitTurn(GroupOperation op, long deadline) {
    refuseSelfWait(op.type());
    long sequence = queue.enter(deadline);
    if (sequence == CollectiveQueue.STOPPED) {
      throw group.closed(op.type());
    }
    if (sequence == CollectiveQueue.TAKEN) {
      throw new CollectiveTimeoutException(
          "timed out waiting for another thread's operation; nothing was sent",
          op.describe(-1, -1),
          null);
    }
    return sequence;
  }

  /**
   * Refuses a wait that could never end: that of a listener which is being told of an earlier
   * operation.
   */
  private void refuseSelfWait(OpType type) {
    if (queue.waitsForThisThread()) {
      throw new IllegalStateException(
          type.label()
              + " refused on rank "
              + group.identity.rank()
              + ": a listener must not wait for an operation of its own group");
    }
  }

  private long deadline(OperationSpec spec, long nowNanos) {
    return nowNanos + spec.timeoutNanos(group.timeoutNanos());
  }

  private void issue(GroupOperation op, OperationSpec spec, long sequence, WorkState state) {
    issue(op, spec, sequence, deadline(spec, time.nanoTime()), state);
  }

  private void issue(
      GroupOperation op, OperationSpec spec, long sequence, long deadline, WorkState state) {
    long now = time.nanoTime();
    op.issue(sequence, now, deadline, state);
    op.flightPlace = recorder.issue(spec.call(), sequence, state, now);
    events.begin(op);
  }

  private void tellBefore(
      GroupOperation op, OperationSpec spec, long sequence, boolean callerTells) {
    OpEvent event = listeners.event(spec, sequence);
    if (event != null) {
      boolean missed = op.tell(event, callerTells);
      listeners.before(event);
      if (missed && !callerTells) {
        listeners.afterLater(event, op, op.currentState(), op.failure());
      }
    }
  }

  /** Waits for an operation, or makes the caller's stream wait if the rest is left to a device. */
  private void awaitSynchronous(GroupOperation op) {
    if (op.callerEvent() == null || op.type().isPointToPoint()) {
      op.awaitUninterrupted();
    } else {
      op.synchronizeUninterrupted();
    }
  }

  private void runQueued(GroupOperation op) {
    try {
      execute(op);
    } catch (Throwable t) {
      LOG.log(
          Level.ERROR,
          "rank " + group.identity.rank() + ", group " + group.identity.name() + ": " + op.type(),
          t);
    }
  }

  /** Runs a collective on this thread and ends it. */
  private void execute(GroupOperation op) {
    group.endIfFailed(op);
    if (!op.run()) {
      return;
    }
    try {
      op.callBackend();
      settle(op);
    } catch (Throwable t) {
      endThrown(op, t);
    }
  }

  /** Ends an operation whose backend has returned, unless a device continues it. */
  private void settle(GroupOperation op) {
    if (op.deviceEvent() == null) {
      op.complete();
      Throwable reported = op.reported();
      if (reported != null) {
        endFailed(op, reported);
      }
    } else {
      group.endIfFailed(op);
    }
  }

  /** Ends an operation whose backend threw. */
  private void endThrown(GroupOperation op, Throwable cause) {
    if (cause instanceof UnsupportedOperationException unsupported) {
      endUnsupported(op, unsupported);
    } else {
      keepInterrupt(cause);
      endFailed(op, cause);
      throwIfSerious(cause);
    }
  }

  private void endFailed(GroupOperation op, Throwable cause) {
    TuttiException failure = failures.of(op, cause);
    op.endFailed(Group.stateFor(failure), failure);
  }

  private void endUnsupported(GroupOperation op, UnsupportedOperationException cause) {
    CollectiveException failure =
        new CollectiveException("not supported: " + cause.getMessage(), op.describe(-1, -1), cause);
    if (!op.type().isPointToPoint() && !op.numberStays()) {
      renumber(op, 0);
      queue.takeBack(behind -> renumber(behind, behind.sequenceNumber() - 1));
    }
    op.endFailed(WorkState.FAILED, failure);
  }

  private void renumber(GroupOperation op, long sequence) {
    op.renumber(sequence);
    if (op != inlineOp) { // which is recorded when it ends
      recorder.renumber(op.flightPlace, sequence);
    }
  }

  private static void keepInterrupt(Throwable cause) {
    if (cause instanceof InterruptedException) {
      Thread.currentThread().interrupt();
    }
  }

  private static void throwIfSerious(Throwable cause) {
    if (cause instanceof Error error && !(cause instanceof LinkageError)) {
      throw error;
    }
  }

  /** Handles the end of an operation, on whichever thread ended it. */
  void ended(
      GroupOperation op,
      WorkState state,
      @Nullable TuttiException cause,
      @Nullable OpEvent toTell) {
    pending.remove(op);
    if (state == WorkState.COMPLETED && op.type().isPointToPoint()) {
      counts.completed(op);
    }
    recordEnd(op, state);
    if (toTell != null) {
      listeners.afterLater(toTell, op, state, cause);
    }
  }

  /** Ends the queued operations after the group has failed. */
  void endQueued() {
    queue.drain().forEach(group::endFailed);
  }

  /** Returns the number of collectives issued. */
  long sequence() {
    return queue.sequence();
  }

  /** Returns the number of collectives and messages issued. */
  long issued() {
    return queue.sequence() + messages.get();
  }

  /**
   * Returns where this rank stands, for the reports of all ranks.
   *
   * @param closed whether this rank closes the group without a failure
   */
  RankProgress progress(boolean closed) {
    return new RankProgress(
        closed,
        queue.sequence(),
        group.lastRefusal(),
        group.joining,
        "",
        counts.sent(),
        counts.received(),
        pending.describe(),
        recent(),
        List.of());
  }

  private List<RankProgress.Issued> recent() {
    List<RankProgress.Issued> all = recorder.recent(TOLD, pending.running());
    RankProgress.Issued last = refused;
    if (last != null) {
      all.add(last);
    }
    return all;
  }

  /**
   * Stops when everything has ended by itself; false if the deadline comes first, or if this would
   * mean waiting for the calling thread.
   */
  boolean stopWhenIdle(long limitNanos) {
    return !queue.waitsForThisThread()
        && queue.stopWhenIdle(limitNanos)
        && awaitStarted(limitNanos)
        && pending.await(limitNanos);
  }

  /** Stops a failed group: ends the queued operations, and waits until nothing is in a backend. */
  void stop(long limitNanos) {
    queue.stop().forEach(group::endFailed);
    queue.awaitFree(limitNanos);
    awaitStarted(limitNanos);
  }

  /** Waits until no collective is in a backend; returns at the limit even if one still is. */
  void awaitFree(long limitNanos) {
    boolean _ = queue.awaitFree(limitNanos);
  }

  private boolean awaitStarted(long limitNanos) {
    boolean interrupted = false;
    try {
      while (starting.get() != 0) {
        if (time.nanoTime() - limitNanos > 0) {
          return false;
        }
        time.park(this, PAUSE_NANOS);
        // A thread whose interrupt status is set would no longer sleep.
        interrupted |= Thread.interrupted();
      }
      return true;
    } finally {
      if (interrupted) {
        Thread.currentThread().interrupt();
      }
    }
  }
}
