package dev.tutti.runtime.operation;

import dev.tutti.spi.Time;
import java.lang.System.Logger.Level;
import java.time.Duration;
import java.util.concurrent.locks.LockSupport;
import org.jspecify.annotations.Nullable;

/** The one thread that watches the deadlines of all groups of a process. */
public final class Watchdog {
  /*
   * Groups are scanned at the earliest known deadline, and at each full second of the clock while
   * there are groups. The processes of a host have one clock, so they look at the same moment:
   * where ranks fill the cores, a look takes the core of a spinning rank, and all ranks wait for
   * that once a second instead of once for each of them. A group that starts an operation with an
   * earlier deadline than "wakeAt" unparks the thread. Both sides use volatile accesses: the
   * group makes the deadline visible before it reads wakeAt, and the thread sets wakeAt before it
   * scans, so one of them sees the other. The thread ends when no group is left, and a later
   * group starts a new thread, under this object's monitor. It ends for no other reason, because
   * the deadlines of all groups depend on it.
   *
   * How late the thread is shows how long the process did not run. That time is added up in
   * "lostNanos", before "wakeAt" moves on, so that runningNanos() never counts it as time in which
   * the process ran; for a moment it may be subtracted twice.
   */
  public interface Watched {
    /** Fails overdue operations and returns the next deadline, at most a second from now. */
    long checkDeadlines(long nowNanos);
  }

  private static final System.Logger LOG = System.getLogger(Watchdog.class.getName());

  /** The longest time between two looks. */
  public static final long PERIOD_NANOS = 1_000_000_000;

  private static final long RETRY_NANOS = 100_000_000;

  /** Longer than even an overloaded machine delays a thread. */
  private static final long STANDSTILL_NANOS = 2_500_000_000L;

  /** Less than this does not matter to anyone who waits for answers. */
  private static final long LATE_NANOS = 100_000_000;

  private static final PerTime<Watchdog> ALL = new PerTime<>(Watchdog::new);

  private final Time time;
  private final OrderedSet<Watched> watched = new OrderedSet<>();
  private final OrderedSet<Watched> broken = new OrderedSet<>();
  private volatile Thread thread = Thread.currentThread();
  private volatile long wakeAt;
  private volatile long lostNanos;
  private boolean running;
  private volatile @Nullable Standstill last;

  /** How late this thread was, until when, and the last time before at which it was even later. */
  private record Standstill(long nanos, long endNanos, @Nullable Standstill longer) {
    /** Returns whether this was a moment ago, compared with its length. */
    boolean isRecent(long least, long now) {
      return (now - endNanos) / 2 < least;
    }
  }

  private Watchdog(Time time) {
    this.time = time;
    wakeAt = time.nanoTime();
  }

  /** Returns the watchdog of the process that has a time. */
  public static Watchdog of(Time time) {
    return ALL.of(time);
  }

  public synchronized void watch(Watched group) {
    watched.add(group);
    if (!running) {
      wakeAt = time.nanoTime();
      thread = time.start("tutti-wd", this::run);
      running = true;
    }
  }

  public void unwatch(Watched group) {
    watched.remove(group);
    broken.remove(group);
  }

  /** Ensures that the thread looks no later than a deadline. */
  public void expect(long deadlineNanos) {
    if (deadlineNanos - wakeAt < 0) {
      LockSupport.unpark(thread);
    }
  }

  /** Looks at all groups; returns when to look again. */
  private long look() {
    long now = time.nanoTime();
    long late = now - wakeAt;
    if (late > STANDSTILL_NANOS) {
      Standstill longer = last;
      while (longer != null && (longer.nanos <= late || !longer.isRecent(longer.nanos, now))) {
        longer = longer.longer;
      }
      last = new Standstill(late, now, longer);
    }
    if (late > LATE_NANOS) {
      long before = lostNanos;
      lostNanos = before + late;
    }
    long next = now + PERIOD_NANOS - Math.floorMod(now, PERIOD_NANOS);
    wakeAt = next;
    for (Watched group : watched.copy()) {
      try {
        long deadline = group.checkDeadlines(now);
        next = deadline - next < 0 ? deadline : next;
      } catch (Throwable t) {
        if (broken.add(group)) {
          LOG.log(Level.ERROR, "a check of deadlines failed", t);
        }
      }
    }
    return next;
  }

  /**
   * Returns whether this process stood still until recently, for instance because it was stopped:
   * this thread is late, or was a moment ago.
   *
   * @param limit how late this thread must be; at least 2.5 s, which a busy machine may delay it
   * @param since standstills that ended before do not count; null if all do
   */
  public boolean stoodStill(Duration limit, @Nullable Long since) {
    long least = Math.max(STANDSTILL_NANOS, Deadlines.nanos(limit));
    long now = time.nanoTime();
    Standstill ended = last;
    while (ended != null && ended.nanos <= least) {
      ended = ended.longer;
    }
    return (!watched.isEmpty() && now - wakeAt > least)
        || (ended != null
            && ended.isRecent(least, now)
            && (since == null || ended.endNanos - since > 0));
  }

  /**
   * Returns a clock that stands still while the process does, for limits that must not count the
   * process's own lateness against others. Only differences have a meaning.
   */
  public long runningNanos() {
    long now = time.nanoTime();
    return now - lostNanos(now);
  }

  /**
   * Returns a clock that runs only while this process stands still, which {@link #runningNanos}
   * does not count. Only differences have a meaning.
   */
  public long lostNanos() {
    return lostNanos(time.nanoTime());
  }

  private long lostNanos(long now) {
    long late = watched.isEmpty() ? 0 : now - wakeAt;
    return (late > LATE_NANOS ? late : 0) + lostNanos;
  }

  private void run() {
    while (true) {
      long next;
      try {
        next = look();
      } catch (RuntimeException | Error e) {
        // There is no memory for a look or for logging; a later look finds what is overdue.
        next = time.nanoTime() + RETRY_NANOS;
      }
      wakeAt = next;
      synchronized (this) {
        if (watched.isEmpty()) {
          running = false;
          return;
        }
      }
      long left = next - time.nanoTime();
      if (left > 0) {
        time.park(this, left);
      }
    }
  }
}
