package dev.tutti.runtime.group;

import static org.assertj.core.api.Assertions.catchThrowable;

import java.time.Duration;
import java.util.List;
import java.util.concurrent.ConcurrentLinkedQueue;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;

/**
 * The times at which ranks make a call with a short timeout. On a busy machine a rank may call so
 * late that it looks as absent as those that stay away, take more than a second to answer, or stand
 * still until it blames itself; such a run proves nothing.
 */
final class CallTimes {
  private static final int MOST_RUNS = 8;
  private static final Duration LONGEST = Duration.ofSeconds(16);

  private final ConcurrentLinkedQueue<Long> nanos = new ConcurrentLinkedQueue<>();

  /** A run of all ranks. */
  interface Run {
    List<Throwable> failures(Duration timeout, CallTimes times) throws Exception;
  }

  /**
   * Returns the failures of the first run in which all callers call within half the timeout and all
   * ranks answer; each further run has up to four times the timeout of the one before. The last of
   * several runs counts as it is.
   */
  static List<Throwable> whenPunctual(int callers, Duration shortest, Run run) throws Exception {
    Duration timeout = shortest;
    for (int runs = 1; ; runs++) {
      CallTimes times = new CallTimes();
      List<Throwable> failures = run.failures(timeout, times);
      boolean punctual =
          times.nanos.size() == callers
              && times.spread().compareTo(timeout.dividedBy(2)) < 0
              && failures.stream().noneMatch(CallTimes::saysTooSlow);
      if (punctual || runs == MOST_RUNS) {
        return failures;
      }
      Duration longer = timeout.multipliedBy(4);
      timeout = longer.compareTo(LONGEST) < 0 ? longer : LONGEST;
    }
  }

  private static boolean saysTooSlow(Throwable failure) {
    String text = String.valueOf(failure);
    return text.contains("does not answer") || text.contains("was paused until now");
  }

  /**
   * Makes a call that fails, and notes when it began, unless it came so late that its failure does
   * not say what it says where all callers are punctual.
   */
  Throwable failing(String said, ThrowingCallable call) {
    long now = System.nanoTime();
    Throwable failure = catchThrowable(call);
    if (String.valueOf(failure).contains(said)) {
      nanos.add(now);
    }
    return failure;
  }

  private Duration spread() {
    long first = nanos.peek();
    long least = nanos.stream().mapToLong(time -> time - first).min().orElseThrow();
    long most = nanos.stream().mapToLong(time -> time - first).max().orElseThrow();
    return Duration.ofNanos(most - least);
  }
}
