package dev.tutti.aeron.driver;

import dev.tutti.store.internal.YieldingWait;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;

/**
 * Says how long a thread that looks for messages stays awake when there are none; used by that
 * thread only.
 */
public final class IdleBackoff {
  /*
   * Right after work, more is likely: the thread stays awake for a moment. Then it sleeps for a part of the
   * time that it has been quiet, so a message waits for at most a fraction of the pause before it. While
   * many threads keep the cores busy, these short sleeps also gather messages. One that somebody wakes goes
   * on to that soon, since to be woken costs more than a look, but only once.
   */
  private static final long SHORTEST_NANOS = TimeUnit.MICROSECONDS.toNanos(20);
  private static final long LONGEST_NANOS = TimeUnit.MILLISECONDS.toNanos(1);
  private static final int PART = 16;

  /** Is for how long a thread without a bell sleeps briefly. */
  public static final long LONG_NANOS = PART * LONGEST_NANOS;

  /** Is for how long a thread that is woken sleeps briefly. */
  public static final long SHORT_NANOS = TimeUnit.MICROSECONDS.toNanos(500);

  private final boolean spin;
  private final YieldingWait awake = new YieldingWait();
  private boolean quiet;
  private long since;

  public IdleBackoff(boolean spin) {
    this.spin = spin;
  }

  /** Says that the last look found something. */
  public void found() {
    quiet = false;
  }

  /** Gives the core to others for a moment; returns whether to look again, else to sleep. */
  public boolean staysAwake() {
    if (!quiet) {
      quiet = true;
      since = System.nanoTime();
      awake.start();
    }
    return awake.yields();
  }

  /** Sleeps for less than a millisecond, unless it has been quiet for long; returns whether. */
  public boolean sleepsBriefly(long longNanos) {
    long nanos = System.nanoTime() - since;
    if (nanos >= longNanos) {
      return false;
    }
    LockSupport.parkNanos(Math.max(nanos / PART, SHORTEST_NANOS));
    return true;
  }

  /** Does what is right after a look that found something, or nothing, where nobody wakes it. */
  public void after(boolean found) {
    if (found) {
      found();
    } else if (spin) {
      Thread.onSpinWait();
    } else if (!staysAwake() && !sleepsBriefly(LONG_NANOS)) {
      LockSupport.parkNanos(LONGEST_NANOS);
    }
  }
}
