package dev.tutti.cuda;

import java.time.Duration;
import java.util.concurrent.locks.LockSupport;
import java.util.function.BooleanSupplier;

/** Waits for conditions, with a deadline. */
public final class Until {
  /** How long a test waits for an event that must happen. */
  public static final Duration LONG = Duration.ofSeconds(60);

  private Until() {}

  /** Waits until a condition holds. */
  public static void holds(String what, BooleanSupplier condition) {
    holds(what, LONG, condition);
  }

  /** Waits until a condition holds that may take longer, such as the start of processes. */
  static void holds(String what, Duration limit, BooleanSupplier condition) {
    long deadline = System.nanoTime() + limit.toNanos();
    while (!condition.getAsBoolean()) {
      if (System.nanoTime() - deadline >= 0) {
        throw new AssertionError("waited " + limit + " for " + what);
      }
      LockSupport.parkNanos(1_000_000);
    }
  }
}
