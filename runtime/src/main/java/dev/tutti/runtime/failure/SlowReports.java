package dev.tutti.runtime.failure;

import dev.tutti.runtime.operation.GroupIdentity;
import dev.tutti.runtime.operation.GroupOperation;
import dev.tutti.runtime.operation.RankProgress.Pending;
import java.lang.System.Logger.Level;
import java.time.Duration;
import java.util.function.BooleanSupplier;
import java.util.function.Consumer;

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
  private final JobMonitor monitor;

  public SlowReports(GroupIdentity identity, JobMonitor monitor) {
    this.identity = identity;
    this.monitor = monitor;
  }

  /**
   * Asks the other ranks, and logs their answers on a thread of its own. Does not block.
   *
   * @param op the operation that waits
   * @param elapsed how long it has waited
   * @param others how many other messages wait as well
   * @param isWaiting returns whether the operation still waits
   */
  public void report(Pending op, Duration elapsed, int others, BooleanSupplier isWaiting) {
    Question question =
        new Question(
            identity.name(),
            identity.rank(),
            op.type(),
            op.sequence(),
            op.peer(),
            op.tag(),
            elapsed);
    Consumer<String> log =
        verdict -> {
          if (isWaiting.getAsBoolean()) {
            log(verdict, others);
          }
        };
    if (identity.size() == 1) {
      String verdict = JobVerdict.unexplained(question.timeout(), "").text();
      String thread = "tutti-ask-" + identity.name() + "-" + identity.rank();
      Thread _ = identity.time().start(thread, () -> log.accept(verdict));
    } else {
      monitor.whatKeeps(question, log);
    }
  }

  private void log(String verdict, int others) {
    LOG.log(
        Level.WARNING,
        "rank %d/%d, group %s: %s%s"
            .formatted(
                identity.rank(),
                identity.size(),
                identity.name(),
                verdict,
                others == 0 ? "" : "; " + others + " more messages wait as well"));
  }

  /** Identifies an operation of this group. */
  public static Pending pending(GroupOperation op, long sequence) {
    return new Pending(op.type(), sequence, op.peer(), op.tag());
  }
}
