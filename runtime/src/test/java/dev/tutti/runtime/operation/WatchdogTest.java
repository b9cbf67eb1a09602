package dev.tutti.runtime.operation;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.runtime.group.LocalWorld;
import dev.tutti.spi.ForwardingTime;
import dev.tutti.spi.Time;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.Semaphore;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.logging.Handler;
import java.util.logging.LogRecord;
import java.util.logging.Logger;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.parallel.Isolated;

@Timeout(300)
@Isolated("breaks the log of all watchdogs")
class WatchdogTest {
  /** The time of this machine, but with a watchdog of its own. */
  private static final class OwnTime extends ForwardingTime {
    OwnTime() {
      super(Time.SYSTEM);
    }
  }

  private final Watchdog watchdog = Watchdog.of(new OwnTime());

  @Test
  void survivesWhatItWatches() {
    AtomicInteger looks = new AtomicInteger();
    Watchdog.Watched thrower =
        now -> {
          throw new AssertionError("thrown by a group");
        };
    Watchdog.Watched good =
        now -> {
          looks.incrementAndGet();
          return now + 1_000_000;
        };
    try (LocalWorld.Quiet _ = LocalWorld.quiet(Watchdog.class)) {
      watchdog.watch(thrower);
      watchdog.watch(good);
      LocalWorld.until("100 looks", () -> looks.get() > 100);
    } finally {
      watchdog.unwatch(thrower);
      watchdog.unwatch(good);
    }
    assertThat(looks.get()).isGreaterThan(100);
  }

  /** A clock that only the test moves. */
  private static final class SetTime extends ForwardingTime {
    private final AtomicLong now = new AtomicLong(10 * Watchdog.PERIOD_NANOS);

    SetTime() {
      super(Time.SYSTEM);
    }

    @Override
    public long nanoTime() {
      return now.get();
    }

    @Override
    public void park(Object blocker, long nanos) {
      long end = nanoTime() + nanos;
      while (nanoTime() - end < 0) {
        super.park(blocker, 100_000);
      }
    }
  }

  /** A clock of which a park takes as long as it may, and a little more. */
  private static final class PlayedTime extends ForwardingTime {
    private static final long LATE = 70_000;
    private final AtomicLong now;

    PlayedTime(long start) {
      super(Time.SYSTEM);
      now = new AtomicLong(start);
    }

    @Override
    public long nanoTime() {
      return now.get();
    }

    @Override
    public void park(Object blocker, long nanos) {
      now.addAndGet(nanos + LATE);
    }
  }

  /** Returns when a watchdog whose clock starts at a time looks. */
  private static List<Long> looksFrom(long start, long deadline) throws InterruptedException {
    Watchdog watchdog = Watchdog.of(new PlayedTime(start));
    BlockingQueue<Long> looks = new LinkedBlockingQueue<>();
    Watchdog.Watched group =
        now -> {
          looks.add(now);
          return now < deadline ? deadline : now + Watchdog.PERIOD_NANOS;
        };
    watchdog.watch(group);
    List<Long> first = new ArrayList<>();
    while (first.size() < 5) {
      first.add(looks.take());
    }
    watchdog.unwatch(group);
    return first;
  }

  @Test
  void processesOfOneClockLookAtTheSameMoments() throws InterruptedException {
    long second = Watchdog.PERIOD_NANOS;
    for (long start : new long[] {10 * second, 10 * second + 1, 11 * second - 1}) {
      assertThat(looksFrom(start, 0))
          .containsExactly(
              start,
              11 * second + PlayedTime.LATE,
              12 * second + PlayedTime.LATE,
              13 * second + PlayedTime.LATE,
              14 * second + PlayedTime.LATE);
    }
    assertThat(looksFrom(-second / 2, 0)).startsWith(-second / 2, PlayedTime.LATE);
  }

  @Test
  void looksAtADeadlineToo() throws InterruptedException {
    long second = Watchdog.PERIOD_NANOS;
    long start = 10 * second + second / 2;
    long deadline = 11 * second + second / 4;
    assertThat(looksFrom(start, deadline))
        .containsExactly(
            start,
            11 * second + PlayedTime.LATE,
            deadline + PlayedTime.LATE,
            12 * second + PlayedTime.LATE,
            13 * second + PlayedTime.LATE);
  }

  /** A group that keeps the thread from its look makes it as late as a process that was stopped. */
  private static final class LateThread implements AutoCloseable {
    private final SetTime time = new SetTime();
    private final Watchdog watchdog = Watchdog.of(time);
    private final Semaphore looks = new Semaphore(0);
    private final Semaphore goOn = new Semaphore(0);
    private final Watchdog.Watched group =
        now -> {
          looks.release();
          goOn.acquireUninterruptibly();
          return now + Watchdog.PERIOD_NANOS;
        };

    LateThread() throws InterruptedException {
      watchdog.watch(group);
      looks.acquire();
    }

    /** Lets the thread look again, by some time too late. */
    void lookLate(long nanos) throws InterruptedException {
      time.now.addAndGet(Watchdog.PERIOD_NANOS + nanos);
      goOn.release();
      looks.acquire();
    }

    boolean stoodStill(Duration limit, @Nullable Long since) {
      return watchdog.stoodStill(limit, since);
    }

    @Override
    public void close() {
      watchdog.unwatch(group);
      goOn.release(2);
      time.now.addAndGet(Watchdog.PERIOD_NANOS);
    }
  }

  @Test
  void theProcessStoodStillIfTheThreadWasLaterThanTheLimit() throws Exception {
    try (LateThread thread = new LateThread()) {
      thread.time.now.addAndGet(Watchdog.PERIOD_NANOS + 2_500_000_000L);
      assertThat(thread.stoodStill(Duration.ZERO, null)).isFalse();
      thread.time.now.addAndGet(1);
      assertThat(thread.stoodStill(Duration.ZERO, null)).isTrue();
      assertThat(thread.stoodStill(Duration.ofHours(1), null)).isFalse();
      thread.goOn.release();
      thread.looks.acquire();
      assertThat(thread.stoodStill(Duration.ZERO, null)).isTrue();
      assertThat(thread.stoodStill(Duration.ofHours(1), null)).isFalse();
      for (int second = 1; second <= 5; second++) {
        assertThat(thread.stoodStill(Duration.ZERO, null)).as("after %d s", second - 1).isTrue();
        thread.lookLate(0);
      }
      assertThat(thread.stoodStill(Duration.ZERO, null)).isFalse();
    }
  }

  @Test
  void aStandstillCountsIfItEndedLaterThanATimeAlsoAfterALongerOne() throws Exception {
    try (LateThread thread = new LateThread()) {
      thread.lookLate(20_000_000_000L);
      long since = thread.time.nanoTime();
      assertThat(thread.stoodStill(Duration.ZERO, since - 1)).isTrue();
      assertThat(thread.stoodStill(Duration.ZERO, since)).isFalse();
      thread.lookLate(4_000_000_000L);
      assertThat(thread.stoodStill(Duration.ZERO, since)).isTrue();
      assertThat(thread.stoodStill(Duration.ofSeconds(10), null)).isTrue();
      assertThat(thread.stoodStill(Duration.ofSeconds(10), since)).isFalse();
    }
  }

  @Test
  void aProcessThatRunsLosesNoTime() throws Exception {
    AtomicLong steps = new AtomicLong();
    Time moving =
        new ForwardingTime(Time.SYSTEM) {
          @Override
          public long nanoTime() {
            return steps.incrementAndGet();
          }
        };
    Watchdog unwatched = Watchdog.of(moving);
    long lost = unwatched.lostNanos();
    assertThat(unwatched.lostNanos()).isEqualTo(lost);
    try (LateThread thread = new LateThread()) {
      long before = thread.watchdog.lostNanos();
      thread.lookLate(4_000_000_000L);
      assertThat(thread.watchdog.lostNanos()).isEqualTo(before + 4_000_000_000L);
      thread.lookLate(100_000_000);
      assertThat(thread.watchdog.lostNanos()).isEqualTo(before + 4_000_000_000L);
    }
  }

  @Test
  void survivesALogThatThrows() {
    AtomicInteger looks = new AtomicInteger();
    AtomicInteger logged = new AtomicInteger();
    OutOfMemoryError thrown = new OutOfMemoryError("thrown by a group");
    Handler breaking =
        new Handler() {
          @Override
          public void publish(LogRecord entry) {
            // The other test's group may be logged late.
            if (thrown.equals(entry.getThrown())) {
              logged.incrementAndGet();
            }
            throw new OutOfMemoryError("played");
          }

          @Override
          public void flush() {}

          @Override
          public void close() {}
        };
    Watchdog.Watched thrower =
        now -> {
          throw thrown;
        };
    Watchdog.Watched good =
        now -> {
          looks.incrementAndGet();
          return now + 1_000_000;
        };
    Logger logger = Logger.getLogger(Watchdog.class.getName());
    logger.addHandler(breaking);
    logger.setUseParentHandlers(false);
    try {
      watchdog.watch(thrower);
      LocalWorld.until("the log", () -> logged.get() > 0);
      watchdog.watch(good);
      LocalWorld.until("10 looks", () -> looks.get() > 10);
    } finally {
      watchdog.unwatch(thrower);
      watchdog.unwatch(good);
      logger.removeHandler(breaking);
      logger.setUseParentHandlers(true);
    }
    assertThat(logged.get()).isEqualTo(1);
  }
}
