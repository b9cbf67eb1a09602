package dev.tutti.cli.simulate;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import org.junit.jupiter.api.Test;

class TrainingStepTest {
  @Test
  void reductionsThatCostNothingAddNothing() {
    assertThat(new TrainingStep(100, 25, 0.3).seconds(bytes -> 0)).isEqualTo(0.3, within(1e-12));
  }

  @Test
  void onlyTheLastBucketIsWaitedForIfReductionsAreFast() {
    // Backward takes 0.2 s, so a bucket fills in 0.05 s and is reduced in 0.01 s.
    assertThat(new TrainingStep(100, 25, 0.3).seconds(bytes -> 0.01))
        .isEqualTo(0.31, within(1e-12));
  }

  @Test
  void slowReductionsQueue() {
    // The first bucket is full after 0.1 + 0.05 s; four reductions of 0.1 s follow.
    assertThat(new TrainingStep(100, 25, 0.3).seconds(bytes -> 0.1)).isEqualTo(0.55, within(1e-12));
  }

  @Test
  void theLastBucketMayBeSmaller() {
    // Buckets of 40, 40 and 20; each byte takes 0.01 s, so the first waits for 0.1 + 0.08 s.
    assertThat(new TrainingStep(100, 40, 0.3).seconds(bytes -> bytes * 0.01))
        .isEqualTo(1.18, within(1e-12));
  }

  @Test
  void bucketsMayBeAsManyAsBytes() {
    long bytes = Long.MAX_VALUE;
    assertThat(new TrainingStep(bytes, 1, 0.3).seconds(each -> 1)).isEqualTo(0.1 + bytes);
    assertThat(new TrainingStep(bytes, bytes, 0.3).seconds(each -> 1))
        .isEqualTo(1.3, within(1e-12));
    assertThat(new TrainingStep(1, bytes, 0.3).seconds(each -> each)).isEqualTo(1.3, within(1e-12));
  }

  @Test
  void emptyBucketsAreRefused() {
    assertThatThrownBy(() -> new TrainingStep(100, 0, 1)).hasMessageContaining("at least 1 byte");
  }
}
