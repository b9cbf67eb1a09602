package dev.tutti.runtime.operation;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatNoException;

import dev.tutti.runtime.group.LocalWorld;
import dev.tutti.spi.Time;
import java.time.Duration;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.logging.Handler;
import java.util.logging.LogRecord;
import java.util.logging.Logger;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.parallel.Isolated;

@Timeout(300)
@Isolated("stalls the thread that watches the deadlines of all classes")
class WatchdogTest {
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
      Watchdog.of(Time.SYSTEM).watch(thrower);
      Watchdog.of(Time.SYSTEM).watch(good);
      LocalWorld.until("100 looks", () -> looks.get() > 100);
    } finally {
      Watchdog.of(Time.SYSTEM).unwatch(thrower);
      Watchdog.of(Time.SYSTEM).unwatch(good);
    }
    assertThat(looks.get()).isGreaterThan(100);
  }

  /** A group that keeps the thread busy makes it as late as a process that was stopped. */
  @Test
  void theProcessStoodStillIfTheThreadWasLaterThanTheLimit() {
    CountDownLatch released = new CountDownLatch(1);
    Watchdog.Watched busy =
        now -> {
          assertThatNoException().isThrownBy(() -> released.await(2, TimeUnit.MINUTES));
          return now + Watchdog.PERIOD_NANOS;
        };
    Watchdog.of(Time.SYSTEM).watch(busy);
    try {
      LocalWorld.until("the standstill", () -> Watchdog.of(Time.SYSTEM).stoodStill(Duration.ZERO));
      assertThat(Watchdog.of(Time.SYSTEM).stoodStill(Duration.ofHours(1))).isFalse();
      released.countDown();
      assertThat(Watchdog.of(Time.SYSTEM).stoodStill(Duration.ofHours(1))).isFalse();
      // The ranks of other tests would blame themselves for it.
      LocalWorld.until(
          "its being forgotten", () -> !Watchdog.of(Time.SYSTEM).stoodStill(Duration.ZERO));
    } finally {
      released.countDown();
      Watchdog.of(Time.SYSTEM).unwatch(busy);
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
      Watchdog.of(Time.SYSTEM).watch(thrower);
      LocalWorld.until("the log", () -> logged.get() > 0);
      Watchdog.of(Time.SYSTEM).watch(good);
      LocalWorld.until("10 looks", () -> looks.get() > 10);
    } finally {
      Watchdog.of(Time.SYSTEM).unwatch(thrower);
      Watchdog.of(Time.SYSTEM).unwatch(good);
      logger.removeHandler(breaking);
      logger.setUseParentHandlers(true);
    }
    assertThat(logged.get()).isEqualTo(1);
  }
}
