package dev.tutti.gradients;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.DType;
import dev.tutti.Tensor;
import java.util.List;
import org.junit.jupiter.api.Test;

/** Tests which parameters share a bucket. */
class BucketPlanTest {
  private static Tensor floats(long numel) {
    return Tensor.allocate(DType.FLOAT32, numel);
  }

  @Test
  void aBucketIsFullAtItsLimitAndTheFirstIsSmall() {
    List<Tensor> six = List.of(floats(2), floats(2), floats(2), floats(2), floats(2), floats(2));
    assertThat(BucketPlan.of(six, List.of(5, 4, 3, 2, 1, 0), 8, 16))
        .containsExactly(List.of(5), List.of(4, 3), List.of(2, 1), List.of(0));
  }

  @Test
  void aLargeParameterIsInOneBucketWithWhatCameBefore() {
    List<Tensor> three = List.of(floats(1000), floats(1), floats(1));
    assertThat(BucketPlan.of(three, List.of(2, 1, 0), 4, 100))
        .containsExactly(List.of(2), List.of(1, 0));
  }

  @Test
  void typesHaveBucketsOfTheirOwnInTheOrderOfTheirLastGradient() {
    List<Tensor> mixed =
        List.of(floats(1), Tensor.allocate(DType.FLOAT64, 1), floats(1), floats(1));
    assertThat(BucketPlan.of(mixed, List.of(3, 2, 1, 0), 1 << 20, 1 << 20))
        .containsExactly(List.of(1), List.of(3, 2, 0));
  }

  @Test
  void anEmptyParameterHasItsPlace() {
    List<Tensor> two = List.of(floats(0), floats(0));
    assertThat(BucketPlan.of(two, List.of(1, 0), 1, 1)).containsExactly(List.of(1, 0));
  }
}
