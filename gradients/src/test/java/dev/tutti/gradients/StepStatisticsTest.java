package dev.tutti.gradients;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;

class StepStatisticsTest {
  @Test
  void timesAreForPeople() {
    StepStatistics.Sample sample = new StepStatistics.Sample();
    sample.steps = 2;
    sample.buckets = 3;
    sample.bytes = 80;
    sample.step = 2 * 12_345_678;
    sample.backward = 2 * 10_000_000;
    sample.communication = 2 * 206_895;
    sample.exposed = 2 * 1_500_000_000L;
    assertThat(new StepStatistics(sample, 2))
        .hasToString(
            "StepStatistics[steps=2, buckets=3, bytes=40, step=12.35 ms, backward=10 ms,"
                + " communication=0.21 ms, exposed=1.5 s]");
  }
}
