package dev.tutti.gradients.hook;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import dev.tutti.DType;
import dev.tutti.Tensor;
import dev.tutti.gradients.GradientHook;
import dev.tutti.gradients.GradientReducer;
import dev.tutti.gradients.ReducerOptions;
import dev.tutti.gradients.Worlds;
import java.time.Duration;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** Tests the hooks that send 16 bits per element. */
class CompressionTest {
  private static final float[] SPECIAL = {
    0f,
    -0f,
    1f,
    -1f,
    65504f,
    65520f,
    1e30f,
    -1e30f,
    1e-8f,
    6e-8f,
    1e-40f,
    Float.NaN,
    Float.POSITIVE_INFINITY,
    Float.NEGATIVE_INFINITY,
    Float.MAX_VALUE,
    Float.MIN_VALUE,
    1 + 0x1p-11f,
    1 + 0x1p-10f,
    1.001f,
    1 + 0x1p-8f,
    1 + 0x3p-8f,
    Float.intBitsToFloat(0x7f800001)
  };

  @ParameterizedTest
  @EnumSource(
      value = DType.class,
      names = {"FLOAT16", "BFLOAT16"})
  void conversionsAreThoseOfTensors(DType half) {
    HalfConversion conversion = new HalfConversion(half);
    Random random = new Random(3);
    for (int numel : new int[] {0, 1, 17, 2047, 2048, 2049, 10_000}) {
      float[] values = new float[numel];
      for (int i = 0; i < numel; i++) {
        values[i] = i < SPECIAL.length ? SPECIAL[i] : Float.intBitsToFloat(random.nextInt());
      }
      Tensor source = Tensor.of(values);
      Tensor expected = Tensor.of(half, values);
      Tensor found = Tensor.allocate(half, numel);
      conversion.narrow(source, found);
      assertThat(found.view(DType.INT16).toIntArray())
          .isEqualTo(expected.view(DType.INT16).toIntArray());
      Tensor widened = Tensor.allocate(DType.FLOAT32, numel);
      conversion.widen(found, widened);
      assertThat(widened.toFloatArray()).isEqualTo(expected.toFloatArray());
      Tensor doubles = Tensor.allocate(DType.FLOAT64, numel);
      doubles.copyFrom(expected.toDoubleArray());
      conversion.narrow(doubles, found);
      Tensor widenedDoubles = Tensor.allocate(DType.FLOAT64, numel);
      conversion.widen(found, widenedDoubles);
      assertThat(widenedDoubles.toDoubleArray()).isEqualTo(expected.toDoubleArray());
    }
  }

  /** A number just above the middle of two halves is not rounded to that middle first. */
  @ParameterizedTest
  @EnumSource(
      value = DType.class,
      names = {"FLOAT16", "BFLOAT16"})
  void doublesAreRoundedOnce(DType half) {
    double middle = half == DType.FLOAT16 ? 0x1p-11 : 0x1p-8;
    Tensor doubles = Tensor.of(1 + middle, 1 + middle + 0x1p-40, 1 + 3 * middle - 0x1p-40, -1e300);
    Tensor found = Tensor.allocate(half, 4);
    new HalfConversion(half).narrow(doubles, found);
    assertThat(found.toDoubleArray())
        .containsExactly(1, 1 + 2 * middle, 1 + 2 * middle, Double.NEGATIVE_INFINITY);
  }

  @ParameterizedTest
  @EnumSource
  void meansAreThoseOfRoundedGradients(Worlds world) {
    for (boolean isBfloat16 : new boolean[] {false, true}) {
      GradientHook hook =
          isBfloat16 ? Compression.bfloat16() : Compression.float16(); // of all ranks
      world.run(
          3,
          group -> {
            List<Tensor> parameters =
                List.of(
                    Tensor.allocate(DType.FLOAT32, 5000),
                    Tensor.allocate(DType.FLOAT64, 300),
                    Tensor.allocate(DType.FLOAT16, 30),
                    Tensor.allocate(DType.INT32, 3));
            ReducerOptions options = ReducerOptions.DEFAULT.withHook(hook);
            try (GradientReducer reducer = new GradientReducer(group, parameters, options)) {
              for (int step = 0; step < 3; step++) {
                for (int p = 0; p < 4; p++) {
                  Tensor gradient = reducer.gradient(p);
                  for (long i = 0; i < gradient.numel(); i++) {
                    gradient.setDouble(i, value(step, group.rank(), p, i));
                  }
                  reducer.ready(p);
                }
                reducer.await();
                double epsilon = isBfloat16 ? 0x1p-7 : 0x1p-10;
                for (int p = 0; p < 3; p++) {
                  Tensor gradient = reducer.gradient(p);
                  for (long i = 0; i < gradient.numel(); i++) {
                    double mean = 0;
                    for (int rank = 0; rank < 3; rank++) {
                      mean += value(step, rank, p, i) / 3;
                    }
                    assertThat(gradient.getDouble(i)).isCloseTo(mean, within(8 * epsilon));
                  }
                }
                assertThat(reducer.gradient(3).getLong(2)).isEqualTo(20);
              }
            }
          });
    }
  }

  private static double value(int step, int rank, int parameter, long index) {
    return parameter == 3
        ? 10 * rank + 10
        : Math.sin(step + 2 * rank + 3 * parameter + 0.1 * index);
  }

  @Test
  void aDelayedHookCounts() {
    Worlds.THREADED.run(
        2,
        group -> {
          DelayedHook hook = new DelayedHook(GradientHook.ALL_REDUCE, Duration.ofMillis(5));
          ReducerOptions options = ReducerOptions.DEFAULT.withHook(hook).withBucketBytes(4, 4);
          try (GradientReducer reducer =
              new GradientReducer(group, List.of(Tensor.of(1f), Tensor.of(1f, 2f)), options)) {
            reducer.gradient(1).fill(group.rank());
            reducer.ready(1);
            reducer.ready(0);
            reducer.await();
            assertThat(reducer.gradient(1).getDouble(1)).isEqualTo(0.5);
            assertThat(hook.buckets()).isEqualTo(2);
            assertThat(hook.bytes()).isEqualTo(12);
            assertThat(reducer.statistics().communication())
                .isGreaterThanOrEqualTo(Duration.ofMillis(10));
          }
        });
  }
}
