package dev.tutti.runtime.group;

import dev.tutti.WorkState;
import dev.tutti.runtime.events.Events;
import dev.tutti.runtime.events.OperationTrace;
import dev.tutti.runtime.operation.GroupIdentity;
import dev.tutti.runtime.operation.GroupOperation;

/** Records the operations of a group as events of the JDK's Flight Recorder. */
final class OperationEvents {
  private static final Events EVENTS = Events.get();

  private final GroupIdentity identity;
  private final String backends;

  /** Tells whether the collective on its caller's thread is recorded; guarded by the turn. */
  private boolean isInlineBegun;

  /**
   * Creates the recorder of one group's operations.
   *
   * @param backends the names of its backends
   */
  OperationEvents(GroupIdentity identity, String backends) {
    this.identity = identity;
    this.backends = backends;
  }

  /** Begins recording the collective that the group reuses on its callers' threads. */
  void beginInline(GroupOperation op) {
    if (!EVENTS.areCollectivesRecorded()) {
      return;
    }
    OperationTrace trace = op.trace;
    if (trace == null) {
      trace = EVENTS.reusable();
      op.trace = trace;
    }
    if (trace != null) {
      trace.start();
      isInlineBegun = true;
    }
  }

  /** Ends what {@link #beginInline} began, if it began anything. */
  void endInline(GroupOperation op, WorkState state) {
    if (isInlineBegun) {
      isInlineBegun = false;
      write(op, state, 0);
    }
  }

  /** Begins recording an operation that has been issued. */
  void begin(GroupOperation op) {
    op.trace = EVENTS.begin(op.type());
  }

  /** Ends what {@link #begin} began. */
  void end(GroupOperation op, WorkState state) {
    long started = op.startedNanos();
    write(op, state, started == 0 ? 0 : started - op.issuedNanos());
  }

  private void write(GroupOperation op, WorkState state, long queuedNanos) {
    OperationTrace trace = op.trace;
    if (trace != null) {
      trace.end(
          identity.name(),
          identity.rank(),
          op.call(),
          op.sequenceNumber(),
          backends,
          op.takenPath(),
          state,
          queuedNanos);
    }
  }
}
