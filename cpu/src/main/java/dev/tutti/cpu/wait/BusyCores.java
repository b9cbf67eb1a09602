package dev.tutti.cpu.wait;

/**
 * Detects, from how long a yield takes, that other work keeps the cores busy. Threads may share an
 * instance; a note by one of them may then be lost.
 */
public final class BusyCores {
  /*
   * A thread that yields while others compute comes back only after their time slice; a thread that
   * sleeps and is woken comes back at once. After a yield that took a time slice, threads therefore
   * do not yield during a pause. The pause grows if the next yields of that length come before
   * short yields have added up to the length of the pause. A rank that was held up once soon polls
   * again, while a rank among busy programs hardly ever does. The time between yields does not
   * count: a rank that computes for a long time and waits for a moment sees as little of the cores
   * as one that only waits.
   */
  private static final long SLICE_NANOS = 1_000_000;
  private static final long FIRST_PAUSE = 5_000_000;
  private static final long LONGEST_PAUSE = 160_000_000;

  private static final long CROWD_PAUSE = 100_000_000;

  private final long firstPause;
  private final long longestPause;
  private long pause;
  private long until;

  /** The total length of the yields since the pause. */
  private long quiet;

  private boolean busy;

  /**
   * Creates an instance for ranks, which expect each other at once: its pauses are short at first.
   */
  public BusyCores() {
    this(FIRST_PAUSE, LONGEST_PAUSE);
  }

  private BusyCores(long firstPause, long longestPause) {
    this.firstPause = firstPause;
    this.longestPause = longestPause;
  }

  /**
   * Creates an instance for a store, whose many clients may keep the cores busy: its pauses are
   * long, so that requests accumulate.
   */
  public static BusyCores ofStore() {
    return new BusyCores(CROWD_PAUSE, CROWD_PAUSE);
  }

  /**
   * Returns whether to sleep rather than yield.
   *
   * @param now the time, in terms of the caller's clock
   */
  public boolean areBusy(long now) {
    if (busy && now - until >= 0) {
      busy = false;
    }
    return busy;
  }

  /**
   * Notes a yield.
   *
   * @param before the time when it began, in terms of the caller's clock
   * @param after the time when it ended
   */
  public void yielded(long before, long after) {
    long lasted = after - before;
    if (lasted < SLICE_NANOS) {
      quiet += lasted;
      return;
    }
    boolean again = pause != 0 && quiet < pause;
    quiet = 0;
    pause = again ? Math.min(longestPause, pause * 2) : firstPause;
    until = after + pause;
    busy = true;
  }
}
