package dev.tutti.gloo.shm;

import dev.tutti.gloo.transport.BusyCores;
import dev.tutti.spi.Futex;

/**
 * Paces a thread that waits for a word in memory: it polls for a while, then lets other threads of
 * its core run, then sleeps until the word changes, each time longer. One thread at a time uses it,
 * for one wait at a time.
 */
final class SpinWait {
  private static final int POLLS = 128;
  private static final int CROWDED_POLLS = 8;
  private static final long YIELD_NANOS = 2_000_000;
  private static final long FIRST_SLEEP = 20_000;
  private static final long LONGEST_SLEEP = 1_000_000;

  private final long spinNanos;
  private final FutexWaiters sleepers;
  private final BusyCores cores = new BusyCores();
  private final Futex futex = new Futex();
  private long start;
  private long now;
  private long sleep;

  /**
   * Creates a pacer.
   *
   * @param spinNanos how long to poll before giving the core away; 0 where ranks outnumber cores
   * @param sleepers lets it sleep
   */
  SpinWait(long spinNanos, FutexWaiters sleepers) {
    this.spinNanos = spinNanos;
    this.sleepers = sleepers;
  }

  /** Begins a wait. */
  void start() {
    start = System.nanoTime();
    now = start;
    sleep = FIRST_SLEEP;
  }

  /** Returns how often to look at the word before each {@link #rest}. */
  int polls() {
    return spinNanos == 0 ? CROWDED_POLLS : POLLS;
  }

  /** Tells whether it has come to sleeping, so that there is time to look at anything else. */
  boolean isSlow() {
    long spun = now - start - spinNanos;
    return spun >= YIELD_NANOS || (spun >= 0 && cores.areBusy(now));
  }

  /** Returns when the last rest ended, in terms of {@link System#nanoTime()}. */
  long now() {
    return now;
  }

  /** Returns how long the wait has lasted, in nanoseconds, up to the last rest. */
  long elapsed() {
    return now - start;
  }

  /**
   * Does between polls what the time waited so far asks for.
   *
   * @param offset of the word
   * @param seen what it was after the last poll
   */
  @SuppressWarnings("ThreadPriorityCheck") // lets another rank on this core run; a hint is enough
  void rest(long offset, long seen) {
    if (isSlow()) {
      sleepers.sleep(futex, offset, seen, sleep);
      sleep = Math.min(LONGEST_SLEEP, sleep * 2);
    } else if (now - start >= spinNanos) {
      long before = now;
      Thread.yield();
      now = System.nanoTime();
      cores.yielded(before, now);
      return;
    }
    now = System.nanoTime();
  }
}
