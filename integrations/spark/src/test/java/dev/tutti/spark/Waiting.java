package dev.tutti.spark;

import java.time.Duration;
import java.util.concurrent.Callable;

/** Waits for a condition. */
final class Waiting {
  private static final Duration LIMIT = Duration.ofMinutes(4);
  private static final Duration LOOK = Duration.ofMillis(20);

  private Waiting() {}

  static void until(String what, Callable<Boolean> condition) throws Exception {
    long end = System.nanoTime() + LIMIT.toNanos();
    while (!condition.call()) {
      if (System.nanoTime() - end > 0) {
        throw new AssertionError("within " + LIMIT + " not true: " + what);
      }
      Thread.sleep(LOOK);
    }
  }
}
