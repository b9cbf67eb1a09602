package dev.tutti.gloo.host;

import java.util.concurrent.locks.LockSupport;

/**
 * Paces a thread that waits for a word in memory: it polls for a while, then lets other threads of
 * its core run, then sleeps, each time longer. One thread at a time uses it, for one wait at a
 * time.
 */
final class Pacer {
  private static final int POLLS = 128;
  private static final int CROWDED_POLLS = 8;
  private static final long YIELD_NANOS = 2_000_000;
  private static final long FIRST_PARK = 20_000;
  private static final long LONGEST_PARK = 1_000_000;

  private final long spinNanos;
  private long start;
  private long now;
  private long park;

  /**
   * Creates a pacer.
   *
   * @param spinNanos how long to poll before giving the core away; 0 where ranks outnumber cores
   */
  Pacer(long spinNanos) {
    this.spinNanos = spinNanos;
  }

  /** Begins a wait. */
  void start() {
    start = System.nanoTime();
    now = start;
    park = FIRST_PARK;
  }

  /** Returns how often to look at the word before each {@link #rest}. */
  int polls() {
    return spinNanos == 0 ? CROWDED_POLLS : POLLS;
  }

  /** Tells whether it has come to sleeping, so that there is time to look at anything else. */
  boolean isSlow() {
    return now - start >= spinNanos + YIELD_NANOS;
  }

  /** Returns when the last rest ended, in terms of {@link System#nanoTime()}. */
  long now() {
    return now;
  }

  /** Returns how long the wait has lasted, in nanoseconds, up to the last rest. */
  long elapsed() {
    return now - start;
  }

  /** Does between polls what their number so far asks for. */
  @SuppressWarnings("ThreadPriorityCheck") // lets another rank on this core run; a hint is enough
  void rest() {
    if (isSlow()) {
      LockSupport.parkNanos(this, park);
      park = Math.min(LONGEST_PARK, park * 2);
    } else if (now - start >= spinNanos) {
      Thread.yield();
    }
    now = System.nanoTime();
  }
}
