package dev.tutti.runtime.group;

import dev.tutti.CollectiveTimeoutException;
import dev.tutti.GroupListener.OpEvent;
import dev.tutti.OpType;
import dev.tutti.TuttiException;
import dev.tutti.WorkState;
import dev.tutti.runtime.failure.Failures;
import dev.tutti.runtime.operation.CollectiveQueue;
import dev.tutti.runtime.operation.GroupOperation;
import dev.tutti.runtime.operation.Listeners;
import dev.tutti.runtime.operation.OperationSpec;
import dev.tutti.runtime.operation.PendingOperations;
import java.lang.System.Logger.Level;
import org.jspecify.annotations.Nullable;

/** Issues the operations of a group, and runs its collectives one after the other. */
final class OperationRunner {
  /*
   * No operation is left in a backend once the queue has stopped and no thread has the turn, no
   * message is starting, and nothing is pending.
   *
   * An operation that a thread is executing ends only when the backend has returned, so that its
   * tensors are not touched after its work has ended; other operations end at once when the group
   * fails.
   */
  private static final System.Logger LOG = System.getLogger(OperationRunner.class.getName());

  private final Group group;
  private final Failures failures;
  private final PendingOperations pending;
  private final Listeners listeners;

  final CollectiveQueue queue;
  final OperationEvents events;
  final OperationEnds ends;
  final MessageRunner messages;

  OperationRunner(Group group) {
    this.group = group;
    this.failures = group.failures;
    this.pending = group.pending;
    this.listeners = group.listeners;
    this.queue =
        new CollectiveQueue(
            "tutti-w-" + group.identity.name() + "-" + group.identity.rank(),
            this::runQueued,
            group.time);
    this.events = new OperationEvents(group.identity, group.backendNames, group.recorder);
    this.ends = new OperationEnds(group, queue);
    this.messages = new MessageRunner(group, events, ends);
  }

  /** Issues an operation; if it is synchronous, it is done when this method returns. */
  GroupOperation submit(OperationSpec spec) {
    OpType type = spec.call().type();
    group.ensureOpen(type);
    if (failures.isFailing()) {
      group.standing.late(spec.call());
      failures.refuseIfFailing(type);
    }
    GroupOperation op = new GroupOperation(group, spec);
    try {
      if (type.isPointToPoint()) {
        messages.start(op, spec);
      } else if (spec.backend().isStreamOrdered()) {
        runStreamOrdered(op, spec);
      } else if (spec.async()) {
        enqueue(op, spec);
      } else {
        runOrEnqueue(op, spec);
      }
      awaitIfSynchronous(op, spec);
    } catch (RuntimeException | Error e) {
      if (op.sequenceNumber() == 0) {
        op.releaseCallerEvent();
      }
      throw e;
    } finally {
      listeners.afterForCaller(op);
    }
    return op;
  }

  private void awaitIfSynchronous(GroupOperation op, OperationSpec spec) {
    boolean isOnStream = spec.backend().isStreamOrdered() && !op.type().isPointToPoint();
    // As in c10d, the host waits for a barrier, but for nothing else in a stream.
    if (spec.async() || (isOnStream && op.type() != OpType.BARRIER)) {
      return;
    }
    if (op.callerEvent() == null || op.type().isPointToPoint()) {
      op.awaitUninterrupted();
    } else {
      // The caller's stream waits for what is left to a device.
      op.synchronizeUninterrupted();
    }
  }

  private void runOrEnqueue(GroupOperation op, OperationSpec spec) {
    long sequence = queue.tryEnter();
    if (sequence == CollectiveQueue.TAKEN) {
      refuseSelfWait(op.type());
      enqueue(op, spec);
    } else {
      runWithTurn(op, spec, sequence, group.timeoutNanos(spec), true);
    }
  }

  private void runStreamOrdered(GroupOperation op, OperationSpec spec) {
    long deadline = group.time.nanoTime() + group.timeoutNanos(spec);
    refuseSelfWait(op.type());
    long sequence = queue.enter(deadline);
    if (sequence == CollectiveQueue.TAKEN) {
      throw new CollectiveTimeoutException(
          "timed out waiting for another thread's operation; nothing was sent",
          op.describe(-1, -1),
          null);
    }
    runWithTurn(op, spec, sequence, deadline - group.time.nanoTime(), false);
    op.throwFailure();
  }

  /**
   * Runs a collective on this thread, which has the turn unless the queue has stopped.
   *
   * @param callerNotifies whether the caller notifies listeners of the end
   */
  private void runWithTurn(
      GroupOperation op,
      OperationSpec spec,
      long sequence,
      long timeoutNanos,
      boolean callerNotifies) {
    if (sequence == CollectiveQueue.STOPPED) {
      throw group.closed(op.type());
    }
    try {
      events.issue(op, spec.call(), sequence, timeoutNanos, WorkState.RUNNING);
      pending.add(op);
      listeners.before(op, spec, callerNotifies);
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
              events.issue(op, spec.call(), number, group.timeoutNanos(spec), WorkState.QUEUED);
              pending.add(op);
            },
            hold);
    if (!queued) {
      throw group.closed(op.type());
    }
    if (hold) {
      try {
        listeners.before(op, spec, !spec.async());
      } finally {
        queue.release(op);
      }
    }
    if (failures.verdict() != null) {
      endQueued();
    }
  }

  /**
   * Refuses a wait that could never end: that of a listener which is being notified of an earlier
   * operation.
   */
  private void refuseSelfWait(OpType type) {
    if (queue.waitsForThisThread()) {
      throw new IllegalStateException(
          "%s refused on rank %d: a listener must not wait for an operation of its own group"
              .formatted(type.label(), group.identity.rank()));
    }
  }

  private void runQueued(GroupOperation op) {
    try {
      execute(op);
    } catch (Throwable t) {
      LOG.log(Level.ERROR, group.identity.logPrefix() + op.type(), t);
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
      ends.returned(op);
    } catch (Throwable t) {
      ends.threw(op, t);
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
      messages.counts.completed(op);
    }
    events.end(op, state);
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
    return queue.sequence() + messages.issued();
  }

  /**
   * Stops when everything has ended by itself; false if the deadline comes first, or if this would
   * mean waiting for the calling thread.
   */
  boolean stopWhenIdle(long limitNanos) {
    return !queue.waitsForThisThread()
        && queue.stopWhenIdle(limitNanos)
        && messages.awaitStarted(limitNanos)
        && pending.await(limitNanos);
  }

  /** Stops a failed group: ends the queued operations, and waits until nothing is in a backend. */
  void stop(long limitNanos) {
    queue.stop().forEach(group::endFailed);
    queue.awaitFree(limitNanos);
    messages.awaitStarted(limitNanos);
  }
}
