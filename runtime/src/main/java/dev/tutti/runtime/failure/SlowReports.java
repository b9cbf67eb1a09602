package dev.tutti.runtime.failure;

import dev.tutti.runtime.operation.GroupIdentity;
import dev.tutti.runtime.operation.GroupOperation;
import dev.tutti.runtime.operation.RankProgress.Pending;
import dev.tutti.spi.Time;
import java.lang.System.Logger.Level;
import java.time.Duration;
import java.util.function.BooleanSupplier;

/**
 * Reports, for an operation that waits for a long time, which ranks it waits for and what they do
 * instead.
 */
public final class SlowReports {
  /*
   * A rank with a slow operation asks through the log of failures, so all ranks receive the
   * question at once without polling; each answers with where it stands. The ranks that wait in one
   * collective ask at about the same time. The first question counts for all: the rank that asked
   * it reads the answers, and the others adopt its finding. This never fails an operation, and the
   * waiting thread takes no part in it.
   */
  private static final System.Logger LOG = System.getLogger(SlowReports.class.getName());

  private final GroupIdentity identity;
  private final Time time;
  private final JobMonitor monitor;

  public SlowReports(GroupIdentity identity, JobMonitor monitor) {
    this.identity = identity;
    this.time = identity.time();
    this.monitor = monitor;
  }

  /**
   * Asks the other ranks on a thread of its own, and logs their answers.
   *
   * @param op the operation that waits
   * @param elapsed how long it has waited
   * @param others how many other messages wait as well
   * @param isWaiting tells whether the operation still waits
   */
  public void report(Pending op, Duration elapsed, int others, BooleanSupplier isWaiting) {
    Thread _ =
        time.start(
            "tutti-slow-" + identity.name() + "-" + identity.rank(),
            () -> {
              String found = identity.size() == 1 ? "" : "; " + find(op, elapsed);
              if (isWaiting.getAsBoolean()) {
                log(op, elapsed, others, found);
              }
            });
  }

  private String find(Pending op, Duration elapsed) {
    Question question =
        new Question(
            identity.name(),
            identity.rank(),
            op.type(),
            op.sequence(),
            op.peer(),
            op.tag(),
            elapsed);
    try {
      return BoundedCalls.call(
          time,
          "tutti-ask-" + identity.name() + "-" + identity.rank(),
          monitor.times().question(),
          () -> monitor.whatKeeps(question, identity));
    } catch (Exception e) {
      return Blame.ofSilence(-1);
    }
  }

  private void log(Pending op, Duration elapsed, int others, String found) {
    LOG.log(
        Level.WARNING,
        "rank %d/%d, group %s: %s has waited for %d s%s%s"
            .formatted(
                identity.rank(),
                identity.size(),
                identity.name(),
                op.describe(),
                Math.round(elapsed.toMillis() / 1e3),
                others == 0 ? "" : ", and so have " + others + " more messages",
                found));
  }

  /** Identifies an operation of this group. */
  public static Pending pending(GroupOperation op, long sequence) {
    return new Pending(op.type(), sequence, op.peer(), op.tag());
  }
}
