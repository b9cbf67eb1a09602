package dev.tutti.store.internal;

import java.util.function.LongSupplier;

/**
 * Says how long a thread looks for what is about to come before it sleeps; used by one thread at a
 * time.
 */
public final class YieldingWait {
  /*
   * To wake a thread costs the one who does it more than a request, and a sleeping core more again. So
   * a thread stays awake for a moment and gives its core to whoever needs it between two looks. Where
   * that takes long, the cores are busy with other work, and a thread that yields comes back late while
   * one that is woken comes at once: then nobody yields for a while.
   */
  private static final long AWAKE_NANOS = 50_000;
  private static final long REST_NANOS = 20_000;
  private static final long BUSY_NANOS = 1_000_000;
  private static final long BUSY_PAUSE_NANOS = 100_000_000;

  private final LongSupplier clock;
  private long start;
  private long notBefore;

  public YieldingWait() {
    this(System::nanoTime);
  }

  /** Creates one for tests, by a clock in nanoseconds. */
  YieldingWait(LongSupplier clock) {
    this.clock = clock;
    this.notBefore = clock.getAsLong();
  }

  /** Begins a wait. */
  public void start() {
    start = clock.getAsLong();
  }

  /** Yields; returns whether to look again, else the thread is to sleep. */
  public boolean yields() {
    return yieldsBefore(start + AWAKE_NANOS);
  }

  /** Yields for a moment, unless other work keeps the cores busy. */
  public void rest() {
    long end = clock.getAsLong() + REST_NANOS;
    boolean more = true;
    while (more) {
      more = yieldsBefore(end);
    }
  }

  @SuppressWarnings("ThreadPriorityCheck") // lets the other side run on this core; a hint is enough
  private boolean yieldsBefore(long end) {
    long now = clock.getAsLong();
    if (now - end >= 0 || now - notBefore < 0) {
      return false;
    }
    Thread.yield();
    long after = clock.getAsLong();
    if (after - now > BUSY_NANOS) {
      notBefore = after + BUSY_PAUSE_NANOS;
    }
    return true;
  }
}
