package dev.tutti.spi;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.GroupOptions;
import dev.tutti.Settings;
import java.net.URI;
import java.time.Duration;
import java.util.Map;
import java.util.concurrent.locks.ReentrantLock;
import org.junit.jupiter.api.Test;

class TimeTest {
  private static final long NOW = Long.MAX_VALUE - 1_000;
  private static final Duration CENTURY = Duration.ofDays(36_500);

  private final Time time =
      new ForwardingTime(Time.SYSTEM) {
        @Override
        public long nanoTime() {
          return NOW;
        }
      };

  @Test
  void deadlinesPassTheEndOfTheClock() {
    long deadline = time.deadline(Duration.ofNanos(5_000));
    assertThat(deadline).isNegative();
    assertThat(time.left(deadline)).isEqualTo(Duration.ofNanos(5_000));
    assertThat(time.left(NOW - 1)).isZero();
  }

  @Test
  void deadlinesAreCutSoThatTheyNeverSeemToHavePassed() {
    assertThat(time.left(time.deadline(CENTURY)))
        .isEqualTo(time.left(time.deadline(Duration.ofSeconds(Long.MAX_VALUE))))
        .isGreaterThan(Duration.ofDays(365 * 70));
    assertThat(time.deadline(Duration.ofSeconds(Long.MIN_VALUE)) - NOW).isNegative();
  }

  @Test
  void copiesKeepTheTime() {
    Settings none = Settings.ofEnvironment(Map.of());
    assertThat(GroupOptions.DEFAULT.time()).isSameAs(Time.SYSTEM);
    assertThat(GroupOptions.DEFAULT.withTime(time).withRank(1).time()).isSameAs(time);
    assertThat(GroupOptions.DEFAULT.withTime(time)).isNotEqualTo(GroupOptions.DEFAULT);
    StoreProvider.Request request =
        StoreProvider.Request.of(URI.create("tcp://localhost:1"), 0, 1).withTime(time);
    assertThat(request.withHost(true).withTimeout(CENTURY).withSettings(none).time())
        .isSameAs(time);
  }

  @Test
  void threadsAreDaemonsOfTheCallersGroup() throws Exception {
    Thread thread = Time.SYSTEM.start("named", () -> {});
    assertThat(Time.SYSTEM.join(thread, Duration.ofMinutes(1).toNanos())).isTrue();
    Thread waiting = Time.SYSTEM.unstarted("waits", () -> {});
    assertThat(waiting.isDaemon()).isTrue();
    assertThat(waiting.getName()).isEqualTo("waits");
    assertThat(waiting.getThreadGroup()).isSameAs(Thread.currentThread().getThreadGroup());
  }

  @Test
  void aWaitWithoutTimeEndsAtOnce() throws Exception {
    ReentrantLock lock = new ReentrantLock();
    lock.lock();
    assertThat(Time.SYSTEM.await(lock, lock.newCondition(), 0)).isNotPositive();
    synchronized (this) {
      Time.SYSTEM.await(this, 0);
    }
    Time.SYSTEM.park(this, 0);
    assertThat(Time.SYSTEM.tryLock(lock, 0)).isTrue();
  }
}
