package dev.tutti.runtime.operation;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.runtime.group.LocalWorld;
import dev.tutti.spi.ForwardingTime;
import dev.tutti.spi.Time;
import java.time.Duration;
import java.util.concurrent.Semaphore;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.logging.Handler;
import java.util.logging.LogRecord;
import java.util.logging.Logger;
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
    private final AtomicLong now = new AtomicLong(Long.MAX_VALUE - 1_000_000_000);

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

  /** A group that keeps the thread busy makes it as late as a process that was stopped. */
  @Test
  void theProcessStoodStillIfTheThreadWasLaterThanTheLimit() throws Exception {
    SetTime time = new SetTime();
    Watchdog watchdog = Watchdog.of(time);
    Semaphore looks = new Semaphore(0);
    Semaphore goOn = new Semaphore(0);
    Watchdog.Watched busy =
        now -> {
          looks.release();
          goOn.acquireUninterruptibly();
          return now + Watchdog.PERIOD_NANOS;
        };
    watchdog.watch(busy);
    try {
      looks.acquire();
      time.now.addAndGet(Watchdog.PERIOD_NANOS + 2_500_000_000L);
      assertThat(watchdog.stoodStill(Duration.ZERO)).isFalse();
      time.now.addAndGet(1);
      assertThat(watchdog.stoodStill(Duration.ZERO)).isTrue();
      assertThat(watchdog.stoodStill(Duration.ofHours(1))).isFalse();
      goOn.release();
      looks.acquire();
      assertThat(watchdog.stoodStill(Duration.ZERO)).isTrue();
      assertThat(watchdog.stoodStill(Duration.ofHours(1))).isFalse();
      for (int second = 1; second <= 5; second++) {
        assertThat(watchdog.stoodStill(Duration.ZERO)).as("after %d s", second - 1).isTrue();
        goOn.release();
        time.now.addAndGet(Watchdog.PERIOD_NANOS);
        looks.acquire();
      }
      assertThat(watchdog.stoodStill(Duration.ZERO)).isFalse();
    } finally {
      watchdog.unwatch(busy);
      goOn.release(2);
      time.now.addAndGet(Watchdog.PERIOD_NANOS);
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
