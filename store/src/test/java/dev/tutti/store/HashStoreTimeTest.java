package dev.tutti.store;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.tutti.StoreTimeoutException;
import dev.tutti.spi.ForwardingTime;
import dev.tutti.spi.Time;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.Lock;
import org.junit.jupiter.api.Test;

/** Tests that a store waits by the time that it was given, also through its duplicates. */
class HashStoreTimeTest {
  private static final Duration DAY = Duration.ofDays(1);

  /** A time in which a wait for a signal that does not come is over at once. */
  private static final class LeapingTime extends ForwardingTime {
    LeapingTime() {
      super(Time.SYSTEM);
    }

    long waited;

    @Override
    public long await(Lock lock, Condition condition, long nanos) {
      waited += nanos;
      return 0;
    }
  }

  private final LeapingTime time = new LeapingTime();
  private final HashStore store = new HashStore(DAY, time);

  @Test
  void aDayPassesAtOnce() {
    assertThatThrownBy(() -> store.get("absent")).isInstanceOf(StoreTimeoutException.class);
    assertThatThrownBy(() -> store.duplicate().await(List.of("absent")))
        .isInstanceOf(StoreTimeoutException.class);
    assertThatThrownBy(() -> store.queuePop("empty", DAY))
        .isInstanceOf(StoreTimeoutException.class);
    assertThatThrownBy(() -> store.barrier("early", 2, DAY))
        .isInstanceOf(StoreTimeoutException.class);
    assertThat(time.waited).isEqualTo(4 * DAY.toNanos());
  }
}
