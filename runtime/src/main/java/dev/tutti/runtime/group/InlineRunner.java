package dev.tutti.runtime.group;

import dev.tutti.OpType;
import dev.tutti.ReduceOp;
import dev.tutti.Tensor;
import dev.tutti.WorkState;
import dev.tutti.runtime.failure.Failures;
import dev.tutti.runtime.operation.BoundBackend;
import dev.tutti.runtime.operation.CollectiveQueue;
import dev.tutti.runtime.operation.FlightRecorder;
import dev.tutti.runtime.operation.GroupOperation;
import dev.tutti.runtime.operation.HostStaging;
import dev.tutti.runtime.operation.Listeners;
import dev.tutti.runtime.operation.StreamOperations;
import dev.tutti.spi.Backend;
import dev.tutti.spi.Call;
import org.jspecify.annotations.Nullable;

/**
 * Runs synchronous collectives on their callers' threads, with operations that the group reuses.
 * Allocates nothing; on a device, nothing in the steady state.
 */
final class InlineRunner {
  // The parts of the group, since each step from one object to the next costs a nanosecond.
  private final Group group;
  private final Failures failures;
  private final Listeners listeners;
  private final GroupOperation inline;
  private final StreamOperations onStream;
  private final CollectiveQueue queue;
  private final FlightRecorder recorder;
  private final OperationEvents events;
  private final OperationEnds ends;
  private final boolean isNanChecked;

  InlineRunner(Group group) {
    this.group = group;
    this.failures = group.failures;
    this.listeners = group.listeners;
    this.inline = group.pending.inline;
    this.onStream = group.pending.onStream;
    this.queue = group.runner.queue;
    this.recorder = group.recorder;
    this.events = group.runner.events;
    this.ends = group.runner.ends;
    this.isNanChecked = group.isNanChecked();
  }

  /**
   * Runs a collective whose arguments have been checked.
   *
   * @param output the tensor that is written; null if there is none
   * @param input the tensor that is read; the same as the output if in place
   * @param root the root, or -1 if there is none
   * @param rows the number of rows to and from each rank, if the collective has them
   * @return false if the collective has to queue, or cannot run like this, and nothing was done
   */
  boolean run(
      BoundBackend bound,
      OpType type,
      @Nullable Tensor output,
      @Nullable Tensor input,
      @Nullable ReduceOp reduceOp,
      int root,
      long[] rows) {
    boolean isOnStream = bound.isStreamOrdered();
    if (!isTaken(input, isOnStream)
        || (output != input && !isTaken(output, isOnStream))
        || isNanChecked
        || !listeners.isEmpty()
        || failures.isFailing()
        || group.isClosed()) {
      return false;
    }
    long sequence = queue.tryEnter();
    if (sequence <= 0) {
      return false;
    }
    try {
      GroupOperation op = isOnStream ? onStream.next() : inline;
      Call _ = fill(op.call().reset(type, reduceOp), output, input, root, rows);
      if (isOnStream) {
        runOnStream(op, sequence, bound.backend());
      } else {
        runUntimed(op, sequence, bound.backend());
      }
    } finally {
      queue.exit();
    }
    return true;
  }

  /**
   * Returns whether a backend takes a tensor as it is. A tensor on a device whose backend queues on
   * the host needs its caller's stream event.
   */
  private static boolean isTaken(@Nullable Tensor tensor, boolean isOnStream) {
    return tensor == null
        || (!HostStaging.isNeeded(tensor) && (isOnStream || tensor.device().isCpu()));
  }

  /** Sets the tensors, the root and the rows of a call. */
  static Call fill(
      Call call, @Nullable Tensor output, @Nullable Tensor input, int root, long[] rows) {
    call.root(root);
    if (rows.length > 0) {
      call.splits(
          call.type() == OpType.REDUCE_SCATTER_INTO ? Splits.NONE : rows,
          call.type() == OpType.ALL_GATHER_INTO ? Splits.NONE : rows);
    }
    if (input != null && output == input) {
      call.inPlace(input);
    } else if (input != null && output != null) {
      call.input(input).output(output);
    }
    return call;
  }

  private void runUntimed(GroupOperation op, long sequence, Backend backend) {
    op.issueUntimed(sequence);
    events.beginInline(op);
    boolean isCompleted = false;
    try {
      try {
        backend.run(op);
        op.complete();
      } catch (Throwable t) {
        ends.threw(op, t);
      }
      isCompleted = op.currentState() == WorkState.COMPLETED;
      if (!isCompleted) {
        ends.returned(op);
        op.throwFailure();
      }
    } finally {
      WorkState state = isCompleted ? WorkState.COMPLETED : op.currentState();
      recorder.ended(op, state);
      events.endInline(op, state);
      op.call().forgetTensors();
    }
  }

  /**
   * Runs a collective whose work the caller does not need. As in c10d, the host waits for the
   * device only in a barrier. The turn stays taken during that wait, so that the operation is not
   * reissued while its caller still waits for it.
   */
  private void runOnStream(GroupOperation op, long sequence, Backend backend) {
    try {
      events.issue(op, op.call(), sequence, group.timeoutNanos(), WorkState.RUNNING);
      onStream.add();
      group.watchdog().expect(op.deadlineNanos());
      group.endIfFailed(op);
      op.throwFailure();
      try {
        backend.run(op);
        ends.returned(op);
      } catch (Throwable t) {
        ends.threw(op, t);
      }
      if (op.type() == OpType.BARRIER && op.deviceEvent() != null) {
        op.awaitUninterrupted();
      } else {
        op.throwFailure();
      }
    } finally {
      op.call().forgetTensors();
    }
  }
}
