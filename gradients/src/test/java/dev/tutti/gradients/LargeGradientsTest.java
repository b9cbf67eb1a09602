package dev.tutti.gradients;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.DType;
import dev.tutti.ProcessGroup;
import dev.tutti.Tensor;
import dev.tutti.gradients.hook.Compression;
import dev.tutti.gradients.hook.StripedAllReduce;
import java.util.List;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** Tests that means next to the limit of their type are finite, though the sums are not. */
class LargeGradientsTest {
  private static double mean(
      ProcessGroup group, DType dtype, double value, ReducerOptions options) {
    List<Tensor> parameters = List.of(Tensor.allocate(dtype, 3), Tensor.allocate(dtype, 40_000));
    try (GradientReducer reducer = new GradientReducer(group, parameters, options)) {
      for (int i = 0; i < 2; i++) {
        reducer.gradient(i).fill(value);
        reducer.ready(i);
      }
      reducer.await();
      double mean = reducer.gradient(0).getDouble(2);
      assertThat(reducer.gradient(1).toDoubleArray()).containsOnly(mean);
      return mean;
    }
  }

  @ParameterizedTest
  @EnumSource
  void meansOfEveryTypeAndHookAreFinite(Worlds world) {
    for (int size = 2; size <= 3; size++) {
      world.run(
          size,
          group -> {
            ReducerOptions plain = ReducerOptions.DEFAULT;
            assertThat(mean(group, DType.FLOAT16, 49152, plain)).isEqualTo(49152);
            assertThat(mean(group, DType.BFLOAT16, 0x1.8p127, plain)).isEqualTo(0x1.8p127);
            assertThat(mean(group, DType.FLOAT32, 0x1.8p127, plain)).isEqualTo(0x1.8p127);
            assertThat(mean(group, DType.FLOAT64, 0x1.8p1023, plain)).isEqualTo(0x1.8p1023);
            assertThat(mean(group, DType.INT8, 100, plain)).isEqualTo(100);
            ReducerOptions halves = plain.withHook(Compression.float16());
            assertThat(mean(group, DType.FLOAT32, 49152, halves)).isEqualTo(49152);
            assertThat(mean(group, DType.FLOAT64, 49152, halves)).isEqualTo(49152);
            for (ReducerOptions.Divisor divisor : ReducerOptions.Divisor.values()) {
              ReducerOptions uneven = plain.withUnevenInputs(divisor);
              assertThat(mean(group, DType.FLOAT16, 49152, uneven)).isEqualTo(49152);
            }
            try (StripedAllReduce stripes = StripedAllReduce.over(group, 2)) {
              ReducerOptions striped = plain.withHook(stripes);
              assertThat(mean(group, DType.FLOAT16, 49152, striped)).isEqualTo(49152);
            }
          });
    }
  }
}
