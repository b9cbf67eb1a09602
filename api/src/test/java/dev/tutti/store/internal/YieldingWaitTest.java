package dev.tutti.store.internal;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;

class YieldingWaitTest {
  private static final long MICRO = 1_000;
  private static final long MILLI = 1_000_000;

  private long now = Long.MAX_VALUE - 20 * MICRO;
  private long step;
  private final YieldingWait wait = new YieldingWait(this::tick);

  /** Returns the time, which goes on with each look at it. */
  private long tick() {
    now += step;
    return now;
  }

  @Test
  void staysAwakeFor50Micros() {
    wait.start();
    step = 5 * MICRO;
    int looks = 0;
    while (wait.yields()) {
      looks++;
    }
    assertThat(looks).isEqualTo(5);
    step = 0;
    assertThat(wait.yields()).isFalse();
    wait.start();
    assertThat(wait.yields()).isTrue();
  }

  @Test
  void doesNotYieldFor100MillisAfterAnotherThreadKeptTheCore() {
    wait.start();
    step = MILLI + 1;
    now -= step;
    assertThat(wait.yields()).as("looks once after it comes back").isTrue();
    step = 0;
    wait.start();
    assertThat(wait.yields()).isFalse();
    now += 100 * MILLI - 1;
    wait.start();
    assertThat(wait.yields()).isFalse();
    now += 1;
    wait.start();
    assertThat(wait.yields()).isTrue();
  }

  @Test
  void restsFor20MicrosUnlessAnotherThreadKeptTheCore() {
    step = 5 * MICRO;
    long before = now;
    wait.rest();
    assertThat(now - before).isBetween(20 * MICRO, 30 * MICRO);
    wait.start();
    step = MILLI + 1;
    now -= step;
    assertThat(wait.yields()).isTrue();
    step = MICRO;
    before = now;
    wait.rest();
    assertThat(now - before).as("looks at the clock twice only").isEqualTo(2 * MICRO);
  }
}
