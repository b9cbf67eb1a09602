package dev.tutti.runtime.group;

import dev.tutti.CollectiveException;
import dev.tutti.TuttiException;
import dev.tutti.WorkState;
import dev.tutti.runtime.operation.CollectiveQueue;
import dev.tutti.runtime.operation.GroupOperation;

/** Ends the operations of a group whose backends have returned or thrown. */
record OperationEnds(Group group, CollectiveQueue queue) {
  /** Ends an operation whose backend has returned, unless a device continues it. */
  void returned(GroupOperation op) {
    if (op.deviceEvent() == null) {
      op.complete();
      Throwable reported = op.reported();
      if (reported != null) {
        failed(op, reported);
      }
    } else {
      group.endIfFailed(op);
    }
  }

  /**
   * Ends a collective whose backend threw.
   *
   * @throws Error what the backend threw, if it is serious
   */
  void threw(GroupOperation op, Throwable cause) {
    if (cause instanceof UnsupportedOperationException unsupported) {
      refused(op, unsupported);
    } else {
      if (cause instanceof InterruptedException) {
        Thread.currentThread().interrupt();
      }
      failed(op, cause);
      throwIfSerious(cause);
    }
  }

  private void failed(GroupOperation op, Throwable cause) {
    TuttiException failure = group.failures.of(op, cause);
    op.endFailed(Group.stateFor(failure), failure);
  }

  /** Ends an operation that the backend does not support; a collective gives its number back. */
  void refused(GroupOperation op, UnsupportedOperationException cause) {
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
    if (op != group.pending.inline) { // which is recorded when it ends
      group.recorder.renumber(op.flightPlace, sequence);
    }
  }

  static void throwIfSerious(Throwable cause) {
    if (cause instanceof Error error && !(cause instanceof LinkageError)) {
      throw error;
    }
  }
}
