package dev.tutti;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;

import java.time.Duration;
import org.junit.jupiter.api.Test;

final class CallOptionsTest {
  private static final Duration MINUTE = Duration.ofMinutes(1);

  @Test
  void eachMethodChangesOneThing() {
    assertThat(CallOptions.DEFAULT.timeout()).isEmpty();
    assertThat(CallOptions.DEFAULT.isAsync()).isFalse();
    assertThat(CallOptions.DEFAULT.algorithm()).isEmpty();
    assertThat(CallOptions.ASYNC.timeout()).isEmpty();
    assertThat(CallOptions.ASYNC.isAsync()).isTrue();

    CallOptions ring = CallOptions.timeout(MINUTE).withAlgorithm("ring").withAsync();
    assertThat(ring.timeout()).hasValue(MINUTE);
    assertThat(ring.isAsync()).isTrue();
    assertThat(ring.algorithm()).hasValue("ring");
    assertThat(ring.withTimeout(Duration.ofSeconds(2)))
        .hasToString("CallOptions[timeout=2 s, async=true, algorithm=ring]");
  }

  @Test
  void equalByWhatTheySay() {
    assertThat(CallOptions.DEFAULT.withAsync())
        .isEqualTo(CallOptions.ASYNC)
        .hasSameHashCodeAs(CallOptions.ASYNC)
        .isNotEqualTo(CallOptions.DEFAULT)
        .isNotEqualTo(CallOptions.timeout(MINUTE).withAsync())
        .isNotEqualTo(CallOptions.ASYNC.withAlgorithm("ring"));
  }

  @Test
  @SuppressWarnings("NullAway") // passes null on purpose
  void deadlinesArePositive() {
    for (Duration bad : new Duration[] {Duration.ZERO, Duration.ofMillis(-1), null}) {
      assertThatIllegalArgumentException()
          .isThrownBy(() -> CallOptions.timeout(bad))
          .withMessage("timeout must be positive, but is " + bad);
    }
  }
}
