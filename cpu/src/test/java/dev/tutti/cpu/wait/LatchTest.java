package dev.tutti.cpu.wait;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.spi.ForwardingTime;
import dev.tutti.spi.Time;
import java.time.Duration;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;

class LatchTest {
  private static final Duration HOUR = Duration.ofHours(1);

  @Test
  void opensForThoseThatWaitAndThoseThatComeLater() throws Exception {
    Latch latch = new Latch(Time.SYSTEM);
    FutureTask<Boolean> waiting = new FutureTask<>(() -> latch.await(Time.SYSTEM.deadline(HOUR)));
    Time.SYSTEM.start("waits for the latch", waiting);
    latch.open();
    assertThat(waiting.get(1, TimeUnit.MINUTES)).isTrue();
    assertThat(latch.await(Time.SYSTEM.nanoTime() - 1)).isTrue();
  }

  /** An hour of a time that leaps over what is waited for takes no time. */
  @Test
  void keepsTheDeadlineOfItsOwnTime() throws Exception {
    LeapingTime time = new LeapingTime();
    assertThat(new Latch(time).await(time.deadline(HOUR))).isFalse();
    assertThat(time.now).isEqualTo(HOUR.toNanos());
  }

  private static final class LeapingTime extends ForwardingTime {
    LeapingTime() {
      super(Time.SYSTEM);
    }

    long now;

    @Override
    public long nanoTime() {
      return now;
    }

    @Override
    public void await(Object monitor, long nanos) {
      now += nanos;
    }
  }
}
