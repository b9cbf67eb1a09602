package dev.tutti.runtime.debug;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.Test;

class WrongSecretsTest {
  private static final String ONE = "192.0.2.1";

  // Soon negative, as the JVM's own clock may be.
  private final AtomicLong clock = new AtomicLong(Long.MAX_VALUE - 1);
  private final WrongSecrets wrong = new WrongSecrets(clock::get);

  private long pauseSeconds(String address) {
    return TimeUnit.NANOSECONDS.toSeconds(wrong.pauseNanos(address));
  }

  private void pass(long seconds) {
    clock.addAndGet(TimeUnit.SECONDS.toNanos(seconds));
  }

  @Test
  void pausesDoubleFromTheFifthOnUpToAMinute() {
    for (int i = 0; i < 4; i++) {
      wrong.add(ONE);
      assertThat(pauseSeconds(ONE)).isZero();
    }
    for (long seconds : new long[] {1, 2, 4, 8, 16, 32, 60, 60}) {
      wrong.add(ONE);
      assertThat(pauseSeconds(ONE)).isEqualTo(seconds);
      assertThat(pauseSeconds("192.0.2.2")).isZero();
      pass(seconds - 1);
      assertThat(pauseSeconds(ONE)).isEqualTo(1);
      pass(1);
      assertThat(pauseSeconds(ONE)).isZero();
    }
  }

  @Test
  void tenMinutesLaterItBeginsAnew() {
    for (int i = 0; i < 9; i++) {
      wrong.add(ONE);
    }
    pass(601);
    wrong.add(ONE);
    assertThat(pauseSeconds(ONE)).isZero();
  }

  @Test
  void manyAddressesCountAsOne() {
    for (int i = 0; i < WrongSecrets.MOST_ADDRESSES + 4; i++) {
      wrong.add("192.0.2." + i);
      assertThat(pauseSeconds("other")).isZero();
    }
    wrong.add("198.51.100.1");
    assertThat(pauseSeconds("198.51.100.2")).isEqualTo(1);
    assertThat(pauseSeconds(ONE)).isZero();
    pass(601);
    assertThat(pauseSeconds("198.51.100.2")).isZero();
  }
}
