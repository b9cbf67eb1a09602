package dev.tutti.runtime.operation;

import java.lang.System.Logger.Level;
import java.time.Duration;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.locks.LockSupport;

/** The one thread that watches the deadlines of all groups of this process. */
public final class Watchdog {
  /*
   * Groups are scanned at the earliest known deadline, and at least once a second while there are
   * groups. A group that starts an operation with an earlier deadline than "wakeAt" unparks the
   * thread. Both sides use volatile accesses: the group makes the deadline visible before it reads
   * wakeAt, and the thread sets wakeAt before it scans, so one of them sees the other. The thread
   * ends when no group is left, and a later group starts a new thread, under the class lock. It
   * ends for no other reason, because the deadlines of all groups depend on it.
   */
  public interface Watched {
    /** Fails overdue operations and returns the next deadline, at most a second from now. */
    long checkDeadlines(long nowNanos);
  }

  private static final System.Logger LOG = System.getLogger(Watchdog.class.getName());

  static final long PERIOD_NANOS = 1_000_000_000;
  private static final long RETRY_NANOS = 100_000_000;

  /** More than a busy machine delays a thread. */
  private static final long STANDSTILL_NANOS = 2_500_000_000L;

  private static final Set<Watched> WATCHED = ConcurrentHashMap.newKeySet();
  private static final Set<Watched> BROKEN = ConcurrentHashMap.newKeySet();
  private static volatile Thread thread = Thread.currentThread();
  private static volatile long wakeAt = System.nanoTime();
  private static boolean running;
  private static volatile Standstill last = new Standstill(0, System.nanoTime());

  /** How late this thread was, and when. */
  private record Standstill(long nanos, long endNanos) {}

  private Watchdog() {}

  public static synchronized void watch(Watched watched) {
    WATCHED.add(watched);
    if (!running) {
      wakeAt = System.nanoTime();
      thread = Thread.ofPlatform().daemon().name("tutti-wd").start(Watchdog::run);
      running = true;
    }
  }

  public static void unwatch(Watched watched) {
    WATCHED.remove(watched);
    BROKEN.remove(watched);
  }

  /** Ensures that the thread looks no later than a deadline. */
  public static void expect(long deadlineNanos) {
    if (deadlineNanos - wakeAt < 0) {
      LockSupport.unpark(thread);
    }
  }

  /** Looks at all groups; returns when to look again. */
  private static long look() {
    long now = System.nanoTime();
    long late = now - wakeAt;
    Standstill before = last;
    if (late > STANDSTILL_NANOS
        && (late >= before.nanos || (now - before.endNanos) / 2 >= before.nanos)) {
      last = new Standstill(late, now);
    }
    long next = now + PERIOD_NANOS;
    wakeAt = next;
    for (Watched watched : WATCHED) {
      try {
        long deadline = watched.checkDeadlines(now);
        next = deadline - next < 0 ? deadline : next;
      } catch (Throwable t) {
        if (BROKEN.add(watched)) {
          LOG.log(Level.ERROR, "a check of deadlines failed", t);
        }
      }
    }
    return next;
  }

  /**
   * Tells whether this process stood still until recently, for instance because it was stopped:
   * this thread is late, or was a moment ago.
   *
   * @param limit how late this thread must be; at least 2.5 s, which a busy machine may delay it
   */
  public static boolean stoodStill(Duration limit) {
    long least = Math.max(STANDSTILL_NANOS, Deadlines.nanos(limit));
    long now = System.nanoTime();
    Standstill ended = last;
    return (!WATCHED.isEmpty() && now - wakeAt > least)
        || (ended.nanos > least && (now - ended.endNanos) / 2 < least);
  }

  private static void run() {
    while (true) {
      long next;
      try {
        next = look();
      } catch (RuntimeException | Error e) {
        // There is no memory for a look or for logging; a later look finds what is overdue.
        next = System.nanoTime() + RETRY_NANOS;
      }
      wakeAt = next;
      synchronized (Watchdog.class) {
        if (WATCHED.isEmpty()) {
          running = false;
          return;
        }
      }
      long left = next - System.nanoTime();
      if (left > 0) {
        LockSupport.parkNanos(Watchdog.class, left);
      }
    }
  }
}
