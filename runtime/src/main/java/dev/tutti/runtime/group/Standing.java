package dev.tutti.runtime.group;

import dev.tutti.runtime.failure.FailureEvent;
import dev.tutti.runtime.operation.FlightRecorder;
import dev.tutti.runtime.operation.MessageCounts;
import dev.tutti.runtime.operation.RankProgress;
import dev.tutti.spi.Call;
import java.util.List;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/** Where this rank stands in a group, for reports. Any thread may call its methods. */
final class Standing {
  /** How many of its last operations a rank reports to the others after a time-out. */
  private static final int TOLD = 64;

  private final Group group;
  private final MakerThread maker = new MakerThread();
  private volatile @Nullable Refusal refusal;
  private volatile RankProgress.@Nullable Issued late;
  private volatile String joining = "";

  /** The text of a refusal, and how many operations had been issued before. */
  private record Refusal(String text, long issued) {}

  Standing(Group group) {
    this.group = group;
  }

  /** Notes that a call was refused before anything was sent. */
  void refused(String text) {
    refusal = new Refusal(text, group.runner.issued());
  }

  /** Keeps the first collective that is called after the group began to fail. */
  void late(Call call) {
    if (!call.type().isPointToPoint() && late == null) {
      late = FlightRecorder.issued(call, group.runner.sequence() + 1);
      group.runner.queue.refused();
    }
  }

  /**
   * Waits until this rank has made the call that the others found not to match, so that they know
   * what each rank called.
   */
  void awaitCall(FailureEvent event, long limitNanos) {
    if (!event.op().isPointToPoint()) {
      group.runner.queue.awaitIssued(event.sequence(), () -> late != null, limitNanos);
    }
  }

  /**
   * Runs a step that waits for others to make a group with this rank, and reports so to ranks that
   * ask in the meantime.
   */
  <T> T joining(String what, Supplier<T> step) {
    joining = what;
    try {
      return step.get();
    } finally {
      // If the group has failed in the meantime, the others are notified which call this rank was
      // in.
      if (!group.failures.isFailing()) {
        joining = "";
      }
    }
  }

  /**
   * Returns where this rank stands.
   *
   * @param closed whether this rank closes the group without a failure
   */
  RankProgress progress(boolean closed) {
    MessageCounts counts = group.runner.messages.counts;
    return new RankProgress(
        closed,
        group.runner.sequence(),
        lastRefusal(),
        joining,
        "",
        counts.sent(),
        counts.received(),
        group.pending.describe(),
        recent(),
        List.of());
  }

  /** Returns the same, and at which line of the program this rank's thread is. */
  RankProgress withPlace(boolean closed) {
    return progress(closed).with(maker.place());
  }

  /** Returns the reason why the last call was refused; empty if it was not. */
  private String lastRefusal() {
    Refusal last = refusal;
    return last == null || last.issued != group.runner.issued() ? "" : last.text;
  }

  private List<RankProgress.Issued> recent() {
    List<RankProgress.Issued> all = group.recorder.recent(TOLD, group.pending.running());
    RankProgress.Issued last = late;
    if (last != null) {
      all.add(last);
    }
    return all;
  }
}
