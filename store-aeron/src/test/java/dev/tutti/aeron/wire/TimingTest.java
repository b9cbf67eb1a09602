package dev.tutti.aeron.wire;

import static org.assertj.core.api.Assertions.assertThat;

import java.time.Duration;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class TimingTest {
  @ParameterizedTest
  @CsvSource({
    "3000, 1, 2, 1",
    "4999, 1, 3, 1",
    "5000, 1, 4, 1",
    "9000, 5, 4, 1",
    "10000, 2, 4, 2",
    "60000, 12, 4, 12",
    "3600000, 720, 4, 720"
  })
  void theKernelDetectsALostHostWithinTheLease(
      long leaseMillis, int quiet, int probes, int between) {
    Timing timing = Timing.of(Duration.ofMillis(leaseMillis));

    assertThat(timing.quietSeconds()).isEqualTo(quiet);
    assertThat(timing.probes()).isEqualTo(probes);
    assertThat(timing.probeSeconds()).isEqualTo(between);
    assertThat(quiet + probes * between).isEqualTo((int) (leaseMillis / 1000));
  }
}
