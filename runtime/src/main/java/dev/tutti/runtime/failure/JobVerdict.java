package dev.tutti.runtime.failure;

import dev.tutti.runtime.failure.FailureEvent.Kind;
import dev.tutti.runtime.operation.RankProgress;
import dev.tutti.runtime.operation.RankProgress.Pending;
import java.time.Duration;
import java.util.Comparator;
import java.util.Locale;
import java.util.Map;
import java.util.SortedMap;
import java.util.TreeMap;
import org.jspecify.annotations.Nullable;

/**
 * What is wrong with a job, or that nothing is, in the words that all views of a job use.
 *
 * @param state the state of the job
 * @param rank the rank to blame, or -1
 * @param text the state and the reason, on one line
 */
public record JobVerdict(State state, int rank, String text) {
  /** The states of a job, from the best to the worst. */
  public enum State {
    /** Nothing is wrong. */
    HEALTHY,
    /** The JVM of a rank was paused while others waited for it. */
    PAUSED,
    /** A rank comes late again and again. */
    SLOW,
    /** A rank that others wait for has not come for a long time. */
    HUNG,
    /** The ranks made calls that do not match. */
    MISMATCH,
    /** A group has failed. */
    FAILED;

    /** Returns the name of the state as JSON has it. */
    public String label() {
      return name().toLowerCase(Locale.ROOT);
    }
  }

  public static final JobVerdict HEALTHY = new JobVerdict(State.HEALTHY, -1, "healthy");

  /** Judges the failure of a group by all that is known about it. */
  public static JobVerdict ofFailure(Evidence evidence) {
    AgreedFailure failure = Blame.judge(evidence);
    FailureEvent event = failure.event();
    Diagnosis found = new Diagnosis(failure.failedRank(), failure.text());
    if (Disagreement.isIn(failure.text())) {
      return ofCalls(found);
    }
    return event.kind() == Kind.TIMEOUT && event.sequence() > 0
        ? hung(evidence, found)
        : new JobVerdict(
            event.kind() == Kind.MISMATCH ? State.MISMATCH : State.FAILED,
            failure.failedRank(),
            failure.describe(-1));
  }

  /**
   * Judges an operation that has waited for long.
   *
   * @param evidence the time-out in which the operation would end, and where the ranks stand
   */
  public static JobVerdict ofWait(Evidence evidence) {
    Diagnosis found = Blame.find(evidence);
    return Disagreement.isIn(found.text()) ? ofCalls(found) : hung(evidence, found);
  }

  /** Describes an operation that has waited for long, of which nobody can say why. */
  static JobVerdict unexplained(FailureEvent event, String why) {
    return new JobVerdict(State.HUNG, -1, "hung: " + waiting(event) + why);
  }

  /**
   * Compares the recent calls of ranks; null if all match.
   *
   * @param ranks what each rank reports about itself, by rank
   * @param size the number of ranks in the group
   */
  public static @Nullable JobVerdict ofCalls(SortedMap<Integer, RankProgress> ranks, int size) {
    Diagnosis found = Disagreement.of(ranks, size);
    return found.text().isEmpty() ? null : ofCalls(found);
  }

  private static JobVerdict ofCalls(Diagnosis found) {
    int odd = found.failedRank();
    String who = odd < 0 ? "" : "; rank " + odd + " differs from the others";
    return new JobVerdict(State.MISMATCH, odd, found.text() + who);
  }

  private static JobVerdict hung(Evidence evidence, Diagnosis found) {
    FailureEvent event = evidence.event();
    int rank = found.failedRank();
    if (rank < 0) {
      return unexplained(event, found.text().isEmpty() ? "" : "; " + found.text());
    }
    RankProgress theirs = evidence.answers().get(rank);
    String why =
        theirs != null && isMissing(event, theirs)
            ? missing(evidence, theirs)
            : waiting(event) + "; " + found.text();
    boolean hasLeft = theirs != null && theirs.closed();
    String how = hasLeft ? " has left: " : " is hung: ";
    return new JobVerdict(State.HUNG, rank, "rank " + rank + how + why);
  }

  private static boolean isMissing(FailureEvent event, RankProgress theirs) {
    return !event.op().isPointToPoint() && !theirs.closed() && theirs.issued() < event.sequence();
  }

  /** Says which collective a rank has not called, and what it does instead. */
  private static String missing(Evidence evidence, RankProgress theirs) {
    FailureEvent event = evidence.event();
    Pending missed =
        evidence.answers().values().stream()
            .flatMap(progress -> progress.pending().stream())
            .filter(op -> !op.type().isPointToPoint() && op.sequence() > theirs.issued())
            .min(Comparator.comparingLong(Pending::sequence))
            .orElse(new Pending(event.op(), event.sequence(), -1, 0));
    long called =
        evidence.answers().values().stream()
            .filter(progress -> progress.issued() >= missed.sequence())
            .count();
    String when =
        missed.sequence() == event.sequence() && event.elapsed().isPositive()
            ? " called " + inWords(event.elapsed()) + " ago"
            : " have called";
    return "it has not called %s, which %d of %d ranks%s%s%s"
        .formatted(
            missed.describe(),
            Math.max(1, called),
            evidence.size(),
            when,
            theirs.afterRefusal(),
            theirs.instead());
  }

  private static String waiting(FailureEvent event) {
    Pending op = new Pending(event.op(), event.sequence(), event.peer(), event.tag());
    String waited = event.elapsed().isPositive() ? " for " + inWords(event.elapsed()) : "";
    return "rank " + event.reporter() + " has waited" + waited + " in " + op.describe();
  }

  /** Formats a duration in as many digits as people read: 248 ms, 5.5 s, 61 s. */
  public static String inWords(Duration duration) {
    double seconds = duration.toNanos() / 1e9;
    String format = seconds < 1 ? "%2$.0f ms" : seconds < 9.95 ? "%.1f s" : "%.0f s";
    return String.format(Locale.ROOT, format, seconds, seconds * 1e3);
  }

  /** Returns this verdict on a rank that is hung as one on a rank that is slow. */
  public JobVerdict asSlow() {
    return state == State.HUNG
        ? new JobVerdict(State.SLOW, rank, text.replace(" is hung: ", " is slow: "))
        : this;
  }

  /** Returns this verdict with a rank, and a text, of all ranks in place of those of a group. */
  public JobVerdict inGroup(String group, int globalRank) {
    return new JobVerdict(state, globalRank, "group " + group + ": " + text);
  }

  /** Returns this verdict as plain values. */
  public Map<String, Object> toMap() {
    return new TreeMap<>(Map.of("state", state.label(), "rank", rank, "text", text));
  }
}
