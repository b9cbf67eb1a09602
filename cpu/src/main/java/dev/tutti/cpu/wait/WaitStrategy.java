package dev.tutti.cpu.wait;

import dev.tutti.spi.Time;
import java.util.function.BooleanSupplier;
import org.jspecify.annotations.Nullable;

/**
 * Paces a polling thread: between two looks it spins, later yields its core, and then sleeps,
 * longer each time. Used by one thread at a time, for one wait at a time.
 */
public final class WaitStrategy {
  /*
   * Waking a thread costs the waker more than a message through shared memory, and waking a
   * sleeping core costs even more. A thread therefore stays awake for a moment: it spins if ranks
   * do not outnumber cores, and otherwise yields its core between two looks to any thread that
   * needs it. If other work keeps the cores busy, a thread that yields comes back late while one
   * that is woken comes back at once, and a thread that spins uses up the share of the core that it
   * needs for computing; BusyCores then makes it sleep at once. A spin that takes a time slice is
   * as informative as a yield.
   */
  private static final int POLLS = 128;
  private static final int CROWDED_POLLS = 8;

  /** How long a thread that another thread can wake stays awake. */
  public static final long AWAKE_NANOS = 50_000;

  private static final long FOREVER = Long.MAX_VALUE;
  private static final long POLL_NANOS = 20_000;
  private static final long LONGEST_POLL_NANOS = 1_000_000;
  private static final int POLL_GROWTH = 4;
  private static final long CHECK_NANOS = 1_000_000;

  /** What to do before the next look. */
  public enum Stage {
    SPIN,
    YIELD,
    SLEEP
  }

  private final long spinNanos;
  private final long awakeNanos;
  private final long firstPause;
  private final long longestPause;
  private final int growth;
  private final BusyCores cores;
  private final Time time;
  private @Nullable Futex futex;
  private boolean began;

  /** Whether the thread has spun since it last asked for a stage. */
  private boolean spins;

  private long start;
  private long now;
  private long checked;
  private long pause;

  /**
   * Creates a strategy that doubles its pauses.
   *
   * @param spinNanos how long to spin, in nanoseconds; 0 if ranks outnumber cores
   * @param yieldNanos how long to yield after that, in nanoseconds
   * @param firstPause how long the first sleep lasts, in nanoseconds
   * @param longestPause the maximum length of a sleep, in nanoseconds
   * @param time by which it sleeps
   */
  public WaitStrategy(
      long spinNanos, long yieldNanos, long firstPause, long longestPause, Time time) {
    this(spinNanos, yieldNanos, firstPause, longestPause, 0, new BusyCores(), time);
  }

  /**
   * Creates a strategy.
   *
   * @param spinNanos how long to spin, in nanoseconds; 0 if ranks outnumber cores
   * @param yieldNanos how long to yield after that, in nanoseconds
   * @param firstPause how long the first sleep lasts, in nanoseconds
   * @param longestPause the maximum length of a sleep, in nanoseconds
   * @param growth by what fraction a sleep is longer than the previous one, as a negative power of
   *     two: 0 doubles it, 4 adds one sixteenth
   * @param cores what is known about the cores; strategies of several threads may share it
   * @param time by which it sleeps
   */
  public WaitStrategy(
      long spinNanos,
      long yieldNanos,
      long firstPause,
      long longestPause,
      int growth,
      BusyCores cores,
      Time time) {
    this.spinNanos = spinNanos;
    this.awakeNanos = spinNanos > FOREVER - yieldNanos ? FOREVER : spinNanos + yieldNanos;
    this.firstPause = firstPause;
    this.longestPause = longestPause;
    this.growth = growth;
    this.cores = cores;
    this.time = time;
  }

  /**
   * Creates a strategy for a thread that yields for a while and then sleeps by its own means.
   *
   * @param yieldNanos how long to yield, in nanoseconds
   * @param cores what is known about the cores
   * @param time whose clock it reads
   */
  public static WaitStrategy yielding(long yieldNanos, BusyCores cores, Time time) {
    return new WaitStrategy(0, yieldNanos, 0, 0, 0, cores, time);
  }

  /**
   * Creates a strategy for a thread that polls a store for messages and is not woken by others. Its
   * sleeps last a sixteenth of the wait so far, and at most a millisecond, so a message waits for
   * only a fraction of the pause that preceded it.
   *
   * @param spins whether it spins forever instead
   * @param time by which it sleeps
   */
  public static WaitStrategy polling(boolean spins, Time time) {
    return new WaitStrategy(
        spins ? FOREVER : 0,
        AWAKE_NANOS,
        POLL_NANOS,
        LONGEST_POLL_NANOS,
        POLL_GROWTH,
        BusyCores.ofStore(),
        time);
  }

  /**
   * Creates a strategy for a thread that waits for a device, and begins a wait.
   *
   * @param spinNanos how long to spin, in nanoseconds
   * @param pauseNanos the length of each sleep after that, in nanoseconds
   * @param time by which it sleeps
   */
  public static WaitStrategy spinning(long spinNanos, long pauseNanos, Time time) {
    WaitStrategy made = new WaitStrategy(spinNanos, 0, pauseNanos, pauseNanos, time);
    made.start();
    return made;
  }

  /** Begins a wait. */
  public void start() {
    startAt(time.nanoTime());
  }

  private void startAt(long nanos) {
    began = true;
    spins = false;
    start = nanos;
    now = nanos;
    checked = nanos;
    pause = firstPause;
  }

  /** Ends a wait, because a look found something; the next rest begins another wait. */
  public void reset() {
    began = false;
  }

  /** Returns how often to look between two rests. */
  public int polls() {
    return spinNanos == 0 ? CROWDED_POLLS : POLLS;
  }

  /** Returns true, about once a millisecond, if it is time to check whether to wait any longer. */
  public boolean isCheckDue() {
    if (now - checked < CHECK_NANOS) {
      return false;
    }
    checked = now;
    return true;
  }

  /** Returns when the last rest ended, in terms of the clock. */
  public long now() {
    return now;
  }

  /** Returns how long the wait has lasted up to the end of the last rest, in nanoseconds. */
  public long elapsed() {
    return now - start;
  }

  /**
   * Returns what to do next, for a thread that does it itself; begins a wait if there is none.
   *
   * @param nanos the time, in terms of the clock
   */
  public Stage stage(long nanos) {
    if (!began) {
      startAt(nanos);
    } else if (spins) {
      cores.yielded(now, nanos);
    }
    now = nanos;
    Stage next = stage();
    spins = next == Stage.SPIN;
    return next;
  }

  private Stage stage() {
    long waited = now - start;
    if (waited >= awakeNanos || (spinNanos != FOREVER && cores.areBusy(now))) {
      return Stage.SLEEP;
    }
    return waited < spinNanos ? Stage.SPIN : Stage.YIELD;
  }

  /** Notes that the thread has yielded since {@link #stage(long)}. */
  public void yielded() {
    long before = now;
    now = time.nanoTime();
    cores.yielded(before, now);
  }

  /** Spins or yields before the next look, or returns false at once if it is time to sleep. */
  @SuppressWarnings("ThreadPriorityCheck") // lets another thread on this core run; a hint is enough
  public boolean staysAwake() {
    if (!began) {
      start();
    }
    switch (stage()) {
      case SPIN -> {
        Thread.onSpinWait();
        if (spinNanos != FOREVER) {
          yielded();
        }
      }
      case YIELD -> {
        Thread.yield();
        yielded();
      }
      case SLEEP -> {
        return false;
      }
    }
    return true;
  }

  /** Spins, yields or sleeps before the next look, depending on how long the wait has lasted. */
  public void rest() {
    if (!staysAwake()) {
      pause();
    }
  }

  /**
   * Spins, yields or sleeps before the next look at a word in shared memory.
   *
   * @param waiters the object that ends a sleep when the word changes
   * @param offset the offset of the word
   * @param seen the value of the word at the last look
   */
  public void rest(FutexWaiters waiters, long offset, long seen) {
    if (!staysAwake()) {
      Futex own = futex;
      if (own == null) {
        own = new Futex();
        futex = own;
      }
      waiters.sleep(own, offset, seen, pause);
      paused();
    }
  }

  /** Sleeps before the next look unless the wait has lasted too long; returns whether it slept. */
  public boolean pausesWithin(long nanos) {
    if (now - start >= nanos) {
      return false;
    }
    pause();
    return true;
  }

  /** Returns how long the next sleep lasts, in nanoseconds. */
  long nextPause() {
    return pause;
  }

  private void pause() {
    Uninterrupted.park(time, this, pause);
    paused();
  }

  private void paused() {
    pause = Math.min(longestPause, pause + (pause >> growth));
    now = time.nanoTime();
  }

  /**
   * Waits for a condition.
   *
   * @param isMet checks whether the condition is met
   * @param deadlineNanos the deadline, in terms of the clock of {@code time}
   * @param pauseNanos how long to sleep between two looks, in nanoseconds
   * @param time by which it sleeps
   * @return false if the condition is not met at the deadline
   */
  public static boolean until(
      BooleanSupplier isMet, long deadlineNanos, long pauseNanos, Time time) {
    while (!isMet.getAsBoolean()) {
      if (time.nanoTime() - deadlineNanos >= 0) {
        return false;
      }
      Uninterrupted.park(time, isMet, pauseNanos);
    }
    return true;
  }
}
