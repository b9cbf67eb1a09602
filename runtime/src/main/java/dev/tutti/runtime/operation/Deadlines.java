package dev.tutti.runtime.operation;

import java.time.Duration;
import java.util.concurrent.TimeUnit;

/** Converts durations to nanoseconds without overflow, and to text. */
public final class Deadlines {
  /** Longer than any program runs, and small enough to be added to any time. */
  private static final long FOREVER = Long.MAX_VALUE / 4;

  private Deadlines() {}

  /** Returns a duration in nanoseconds, clamped to 73 years either way. */
  public static long nanos(Duration duration) {
    return Math.clamp(TimeUnit.NANOSECONDS.convert(duration), -FOREVER, FOREVER);
  }

  /** Returns a duration, clamped to 73 years either way. */
  public static Duration cut(Duration duration) {
    return Duration.ofNanos(nanos(duration));
  }
}
