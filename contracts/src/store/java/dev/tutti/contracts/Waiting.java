package dev.tutti.contracts;

import static org.assertj.core.api.Assertions.assertThat;

import java.time.Duration;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.function.BooleanSupplier;

/** Static methods that wait for conditions, with a deadline. */
final class Waiting {
  /** The time that a test waits for something that must happen. */
  static final Duration LONG = Duration.ofSeconds(60);

  /** The longest possible timeout. */
  static final Duration LONGEST = Duration.ofSeconds(Long.MAX_VALUE);

  private Waiting() {}

  /** Waits until a condition holds. */
  static void until(String what, BooleanSupplier condition) {
    long deadline = System.nanoTime() + LONG.toNanos();
    while (!condition.getAsBoolean()) {
      if (System.nanoTime() - deadline >= 0) {
        throw new AssertionError("waited " + LONG + " for " + what);
      }
      LockSupport.parkNanos(1_000_000);
    }
  }

  /** Waits until a latch is open. */
  static void open(CountDownLatch latch) throws InterruptedException {
    assertThat(latch.await(LONG.toMillis(), TimeUnit.MILLISECONDS))
        .as("another rank reached the agreed point within " + LONG)
        .isTrue();
  }
}
