package dev.tutti.cuda;

import java.time.Duration;

/** Turns durations into points of {@link System#nanoTime()} without overflow. */
final class Deadlines {
  /** Is longer than any program runs, and small enough to be added to any time. */
  private static final Duration FOREVER = Duration.ofNanos(Long.MAX_VALUE / 4);

  private Deadlines() {}

  /** Returns the time that is a duration from now. */
  static long in(Duration duration) {
    Duration cut = duration.compareTo(FOREVER) > 0 ? FOREVER : duration;
    return System.nanoTime() + (cut.isNegative() ? 0 : cut.toNanos());
  }
}
