package dev.tutti.aeron;

import dev.tutti.store.internal.YieldingWait;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;

/**
 * Says what a thread that looks for messages does when there are none; used by that thread only.
 */
final class Idling {
  /*
   * Right after work, more is likely: the thread stays awake for a moment. Then it sleeps for a part of
   * the time that it has been quiet, so a message waits for at most a fraction of the pause before it.
   */
  private static final long SHORTEST_NANOS = TimeUnit.MICROSECONDS.toNanos(20);
  private static final long LONGEST_NANOS = TimeUnit.MILLISECONDS.toNanos(1);
  private static final int PART = 16;

  private final boolean spin;
  private final YieldingWait awake = new YieldingWait();
  private boolean quiet;
  private long since;

  Idling(boolean spin) {
    this.spin = spin;
  }

  /** Does what is right after a look that found something, or nothing. */
  void after(boolean found) {
    if (found) {
      quiet = false;
    } else if (spin) {
      Thread.onSpinWait();
    } else if (!quiet) {
      quiet = true;
      since = System.nanoTime();
      awake.start();
    } else if (!awake.yields()) {
      long part = (System.nanoTime() - since) / PART;
      LockSupport.parkNanos(Math.clamp(part, SHORTEST_NANOS, LONGEST_NANOS));
    }
  }
}
