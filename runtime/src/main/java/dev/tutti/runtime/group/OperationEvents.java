package dev.tutti.runtime.group;

import dev.tutti.WorkState;
import dev.tutti.runtime.events.Events;
import dev.tutti.runtime.events.OperationTrace;
import dev.tutti.runtime.operation.FlightRecorder;
import dev.tutti.runtime.operation.GroupIdentity;
import dev.tutti.runtime.operation.GroupOperation;
import dev.tutti.spi.Call;

/**
 * Records the operations of a group in its flight record, and as events of the JDK's Flight
 * Recorder.
 */
final class OperationEvents {
  private static final Events EVENTS = Events.get();

  private final GroupIdentity identity;
  private final String backends;
  private final FlightRecorder recorder;

  /** Whether the collective on its caller's thread is recorded; guarded by the turn. */
  private boolean isInlineBegun;

  /** Creates the recorder of the operations of a group, given the names of its backends. */
  OperationEvents(GroupIdentity identity, String backends, FlightRecorder recorder) {
    this.identity = identity;
    this.backends = backends;
    this.recorder = recorder;
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

  /**
   * Issues an operation, and begins to record it.
   *
   * @param call the call as the program made it
   * @param timeoutNanos how long the operation may take from now
   */
  void issue(GroupOperation op, Call call, long sequence, long timeoutNanos, WorkState state) {
    long now = identity.time().nanoTime();
    op.issue(sequence, now, now + timeoutNanos, state);
    op.flightPlace = recorder.issue(call, sequence, state, now);
    op.trace = EVENTS.begin(op.type());
  }

  /** Records the end of an operation that {@link #issue} began. */
  void end(GroupOperation op, WorkState state) {
    long started = op.startedNanos();
    recorder.end(op.flightPlace, state, started, op.endNanos(), op.takenPath());
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
