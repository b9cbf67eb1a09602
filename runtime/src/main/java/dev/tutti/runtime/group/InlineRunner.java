package dev.tutti.runtime.group;

import dev.tutti.OpType;
import dev.tutti.ReduceOp;
import dev.tutti.Tensor;
import dev.tutti.WorkState;
import dev.tutti.runtime.operation.BoundBackend;
import dev.tutti.runtime.operation.CollectiveQueue;
import dev.tutti.runtime.operation.GroupOperation;
import dev.tutti.runtime.operation.HostStaging;
import dev.tutti.runtime.operation.PendingOperations;
import dev.tutti.spi.Backend;
import dev.tutti.spi.Call;
import org.jspecify.annotations.Nullable;

/**
 * Runs synchronous collectives on their callers' threads, with operations that the group reuses.
 * Allocates nothing; on a device, nothing in the steady state.
 */
final class InlineRunner {
  private final Group group;
  private final PendingOperations pending;
  private final CollectiveQueue queue;
  private final OperationEvents events;
  private final OperationEnds ends;
  private final boolean isNanChecked;

  InlineRunner(Group group) {
    this.group = group;
    this.pending = group.pending;
    this.queue = group.runner.queue;
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
   * @return false if the collective has to queue, or cannot run like this, and nothing was done
   */
  boolean run(
      BoundBackend bound,
      OpType type,
      @Nullable Tensor output,
      @Nullable Tensor input,
      @Nullable ReduceOp reduceOp,
      int root) {
    boolean isOnStream = bound.isStreamOrdered();
    if (!isTaken(output, isOnStream)
        || !isTaken(input, isOnStream)
        || isNanChecked
        || !group.listeners.isEmpty()
        || !group.isUsable()) {
      return false;
    }
    long sequence = queue.tryEnter();
    if (sequence <= 0) {
      return false;
    }
    try {
      GroupOperation op = isOnStream ? pending.onStream.next() : pending.inline;
      fill(op.call().reset(type, reduceOp), output, input, root);
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
   * Tells whether a backend takes a tensor as it is. A tensor on a device whose backend queues on
   * the host needs its caller's stream event.
   */
  private static boolean isTaken(@Nullable Tensor tensor, boolean isOnStream) {
    return tensor == null
        || (!HostStaging.isNeeded(tensor) && (isOnStream || tensor.device().isCpu()));
  }

  /** Sets the tensors and the root of a call. */
  static Call fill(Call call, @Nullable Tensor output, @Nullable Tensor input, int root) {
    call.root(root);
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
    try {
      call(op, backend);
      if (op.currentState() != WorkState.COMPLETED) {
        op.throwFailure();
      }
    } finally {
      events.endInline(op);
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
      pending.onStream.add();
      group.watchdog().expect(op.deadlineNanos());
      group.endIfFailed(op);
      op.throwFailure();
      call(op, backend);
      if (op.type() == OpType.BARRIER && op.deviceEvent() != null) {
        op.awaitUninterrupted();
      } else {
        op.throwFailure();
      }
    } finally {
      op.call().forgetTensors();
    }
  }

  private void call(GroupOperation op, Backend backend) {
    try {
      backend.run(op);
      ends.returned(op);
    } catch (Throwable t) {
      ends.threw(op, t);
    }
  }
}
