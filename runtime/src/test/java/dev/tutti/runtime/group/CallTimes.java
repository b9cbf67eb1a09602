package dev.tutti.runtime.group;

import java.time.Duration;
import java.util.List;
import java.util.concurrent.ConcurrentLinkedQueue;

/**
 * The times at which ranks make a call with a short timeout. On a busy machine a rank may call so
 * late that it looks as absent as those that stay away; such a run proves nothing.
 */
final class CallTimes {
  private final ConcurrentLinkedQueue<Long> nanos = new ConcurrentLinkedQueue<>();

  /** A run of all ranks. */
  interface Run {
    List<Throwable> failures(Duration timeout, CallTimes times) throws Exception;
  }

  /**
   * Returns the failures of the first run in which all callers call within half the timeout; each
   * further run has four times the timeout of the one before.
   */
  static List<Throwable> whenPunctual(int callers, Duration timeout, Run run) throws Exception {
    CallTimes times = new CallTimes();
    List<Throwable> failures = run.failures(timeout, times);
    return times.nanos.size() == callers && times.spread().compareTo(timeout.dividedBy(2)) < 0
        ? failures
        : whenPunctual(callers, timeout.multipliedBy(4), run);
  }

  /** Notes that this thread is about to call. */
  void note() {
    nanos.add(System.nanoTime());
  }

  private Duration spread() {
    long first = nanos.peek();
    long least = nanos.stream().mapToLong(time -> time - first).min().orElseThrow();
    long most = nanos.stream().mapToLong(time -> time - first).max().orElseThrow();
    return Duration.ofNanos(most - least);
  }
}
