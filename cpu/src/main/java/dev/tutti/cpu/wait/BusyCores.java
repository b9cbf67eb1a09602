package dev.tutti.cpu.wait;

/**
 * Notices, by how long a yield takes, that other work keeps the cores busy. Threads may share one;
 * then what one of them notes may be lost.
 */
public final class BusyCores {
  /*
   * A thread that yields while others compute comes back after their time slice; one that sleeps and is woken comes at
   * once. So after a yield of a time slice nobody yields for a pause, which grows if the next yields of a
   * time slice come before short ones have lasted as long as the pause did. A rank that was held up once
   * soon polls again, one among busy programs hardly ever. The time between the yields does not count:
   * a rank that computes for long and waits for a moment sees as little of the cores as one that only waits.
   */
  private static final long SLICE_NANOS = 1_000_000;
  private static final long FIRST_PAUSE = 5_000_000;
  private static final long LONGEST_PAUSE = 160_000_000;

  private static final long CROWD_PAUSE = 100_000_000;

  private final long firstPause;
  private final long longestPause;
  private long pause;
  private long until;

  /** How long the yields since the pause have lasted. */
  private long quiet;

  private boolean busy;

  /** Creates one for ranks, which expect each other at once: its pauses are short at first. */
  public BusyCores() {
    this(FIRST_PAUSE, LONGEST_PAUSE);
  }

  private BusyCores(long firstPause, long longestPause) {
    this.firstPause = firstPause;
    this.longestPause = longestPause;
  }

  /**
   * Creates one for a store, of which many clients may keep the cores busy: its pauses are long, so
   * that requests gather.
   */
  public static BusyCores ofStore() {
    return new BusyCores(CROWD_PAUSE, CROWD_PAUSE);
  }

  /**
   * Tells whether to sleep rather than to yield.
   *
   * @param now in terms of {@link System#nanoTime()}
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
   * @param before when it began, in terms of {@link System#nanoTime()}
   * @param after when it ended
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
