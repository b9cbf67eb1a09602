package dev.tutti.gradients.hook;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import dev.tutti.DType;
import dev.tutti.ProcessGroup;
import dev.tutti.Tensor;
import dev.tutti.gradients.GradientReducer;
import dev.tutti.gradients.ReducerOptions;
import dev.tutti.gradients.Worlds;
import dev.tutti.state.ShardedState;
import java.util.List;
import java.util.Map;
import java.util.Random;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Tests the approximation of gradients by low-rank matrices. */
class PowerSgdTest {
  private static final int ROWS = 30;
  private static final int COLUMNS = 41;
  private static final PowerSgdOptions.FirstFactor FACTOR =
      (parameter, row, column) -> new Random(31L * parameter + 7L * row + column).nextGaussian();

  /** The algorithm as described in the paper, in float64 and for all ranks at once. */
  private static final class Reference {
    final int ranks;
    final int rank;
    final boolean feedback;
    final double[][] q;
    final double[][][] errors;
    double largest;

    Reference(int ranks, int rank, boolean feedback) {
      this.ranks = ranks;
      this.rank = rank;
      this.feedback = feedback;
      q = new double[COLUMNS][rank];
      errors = new double[ranks][ROWS][COLUMNS];
      for (int j = 0; j < COLUMNS; j++) {
        for (int k = 0; k < rank; k++) {
          q[j][k] = FACTOR.at(0, j, k);
        }
      }
    }

    double[][] step(double[][][] gradients) {
      orthonormalize(q);
      double[][] p = new double[ROWS][rank];
      double[][] mean = new double[ROWS][COLUMNS];
      for (int r = 0; r < ranks; r++) {
        for (int i = 0; i < ROWS; i++) {
          for (int j = 0; j < COLUMNS; j++) {
            gradients[r][i][j] += feedback ? errors[r][i][j] : 0;
            mean[i][j] += gradients[r][i][j] / ranks;
            largest = Math.max(largest, Math.abs(gradients[r][i][j]));
            for (int k = 0; k < rank; k++) {
              p[i][k] += gradients[r][i][j] * q[j][k];
            }
          }
        }
      }
      orthonormalize(p);
      double[][] result = new double[ROWS][COLUMNS];
      for (int j = 0; j < COLUMNS; j++) {
        for (int k = 0; k < rank; k++) {
          q[j][k] = 0;
          for (int i = 0; i < ROWS; i++) {
            q[j][k] += mean[i][j] * p[i][k];
          }
          for (int i = 0; i < ROWS; i++) {
            result[i][j] += p[i][k] * q[j][k];
          }
        }
      }
      for (int r = 0; r < ranks; r++) {
        for (int i = 0; i < ROWS; i++) {
          for (int j = 0; j < COLUMNS; j++) {
            errors[r][i][j] = gradients[r][i][j] - result[i][j];
          }
        }
      }
      return result;
    }

    private static void orthonormalize(double[][] matrix) {
      int count = matrix[0].length;
      for (int k = 0; k < count; k++) {
        double norm = 0;
        for (double[] row : matrix) {
          norm += row[k] * row[k];
        }
        for (double[] row : matrix) {
          row[k] /= Math.sqrt(norm);
        }
        for (int other = k + 1; other < count; other++) {
          double overlap = 0;
          for (double[] row : matrix) {
            overlap += row[k] * row[other];
          }
          for (double[] row : matrix) {
            row[other] -= overlap * row[k];
          }
        }
      }
    }
  }

  /**
   * Creates gradients in which each singular value is half the previous one, much as in real
   * models. If the values were nearly equal, float32 would choose other directions than float64
   * within a few steps.
   */
  private static double[][][] gradients(int ranks, int step) {
    double[][][] all = new double[ranks][ROWS][COLUMNS];
    for (int r = 0; r < ranks; r++) {
      Random noise = new Random(100L * step + r);
      for (int i = 0; i < ROWS; i++) {
        for (int j = 0; j < COLUMNS; j++) {
          double value = 0.01 * noise.nextGaussian();
          for (int s = 0; s < 8; s++) {
            value +=
                Math.cos((i + 0.5) * (s + 1 + 0.1 * r) * 0.1)
                    * Math.cos(j * (s + 2) * 0.07)
                    / (1 << s);
          }
          all[r][i][j] = (float) value;
        }
      }
    }
    return all;
  }

  @ParameterizedTest
  @CsvSource({
    "THREADED, 1, 1, true",
    "THREADED, 3, 2, true",
    "SHARED_MEMORY, 2, 3, false",
    "SOCKETS, 4, 4, true"
  })
  void twentyStepsAreThoseOfTheReference(Worlds world, int ranks, int rank, boolean feedback) {
    PowerSgdOptions options =
        PowerSgdOptions.DEFAULT
            .withRank(rank)
            .withPlainSteps(1)
            .withLeastRate(1)
            .withFirstFactor(FACTOR);
    PowerSgd hook =
        new PowerSgd(feedback ? options : options.withoutErrorFeedback()); // of all ranks
    world.run(
        ranks,
        group -> {
          List<Tensor> parameters =
              List.of(
                  Tensor.allocate(DType.FLOAT32, ROWS, COLUMNS),
                  Tensor.allocate(DType.FLOAT32, COLUMNS),
                  Tensor.allocate(DType.FLOAT64, 50, 50));
          Reference reference = new Reference(ranks, rank, feedback);
          try (GradientReducer reducer =
              new GradientReducer(group, parameters, ReducerOptions.DEFAULT.withHook(hook))) {
            for (int step = 0; step < 21; step++) {
              double[][][] all = gradients(ranks, step);
              for (int i = 0; i < ROWS; i++) {
                for (int j = 0; j < COLUMNS; j++) {
                  reducer.gradient(0).setDouble((long) i * COLUMNS + j, all[group.rank()][i][j]);
                }
              }
              reducer.gradient(1).fill(group.rank());
              reducer.gradient(2).fill(3 * group.rank());
              for (int i = 2; i >= 0; i--) {
                reducer.ready(i);
              }
              reducer.await();
              double[][] expected = step == 0 ? mean(all) : reference.step(all);
              for (int i = 0; i < ROWS; i++) {
                for (int j = 0; j < COLUMNS; j++) {
                  assertThat(reducer.gradient(0).getDouble((long) i * COLUMNS + j))
                      .as("element %d %d of step %d", i, j, step)
                      .isCloseTo(expected[i][j], within(1e-5 * (1 + reference.largest)));
                }
              }
              double middle = (ranks - 1) / 2.0;
              assertThat(reducer.gradient(1).toDoubleArray()).containsOnly(middle);
              assertThat(reducer.gradient(2).toDoubleArray()).containsOnly(3 * middle);
            }
          }
        });
  }

  private static double[][] mean(double[][][] all) {
    double[][] mean = new double[ROWS][COLUMNS];
    for (double[][] each : all) {
      for (int i = 0; i < ROWS; i++) {
        for (int j = 0; j < COLUMNS; j++) {
          mean[i][j] += each[i][j] / all.length;
        }
      }
    }
    return mean;
  }

  private static void step(GradientReducer reducer, int rows, int columns, double scale) {
    for (int i = 0; i < rows; i++) {
      for (int j = 0; j < columns; j++) {
        reducer.gradient(0).setDouble((long) i * columns + j, scale * (i + 1) * (j - 7));
      }
    }
    reducer.ready(0);
    reducer.await();
  }

  @Test
  void aMatrixOfRankOneIsExactAndZerosLeaveNoTrace() {
    for (boolean warm : new boolean[] {true, false}) {
      Worlds.THREADED.run(
          2,
          group -> {
            PowerSgdOptions options = PowerSgdOptions.DEFAULT.withPlainSteps(0).withSeed(9);
            PowerSgd hook = new PowerSgd(warm ? options : options.withoutWarmStart());
            try (GradientReducer reducer =
                new GradientReducer(
                    group,
                    List.of(Tensor.allocate(DType.FLOAT32, 20, 5, 6)),
                    ReducerOptions.DEFAULT.withHook(hook))) {
              for (double scale : new double[] {1, 0, 2, 0.5}) {
                step(reducer, 20, 30, scale * (1 + group.rank()));
                for (int i = 0; i < 20; i++) {
                  for (int j = 0; j < 30; j++) {
                    double expected = 1.5 * scale * (i + 1) * (j - 7);
                    assertThat(reducer.gradient(0).getDouble(i * 30L + j))
                        .isCloseTo(expected, within(1e-3 + 1e-5 * Math.abs(expected)));
                  }
                }
              }
            }
          });
    }
  }

  @Test
  void whatIsLeftOutComesLater() {
    Worlds.THREADED.run(
        2,
        group -> {
          PowerSgd hook = new PowerSgd(PowerSgdOptions.DEFAULT.withPlainSteps(0));
          double[] sum = new double[ROWS * COLUMNS];
          double[] wanted = new double[ROWS * COLUMNS];
          int steps = 400;
          double[][][] all = gradients(2, 0);
          double[][] mean = mean(all);
          for (int i = 0; i < wanted.length; i++) {
            wanted[i] = steps * mean[i / COLUMNS][i % COLUMNS];
          }
          try (GradientReducer reducer =
              new GradientReducer(
                  group,
                  List.of(Tensor.allocate(DType.FLOAT32, ROWS, COLUMNS)),
                  ReducerOptions.DEFAULT.withHook(hook))) {
            for (int step = 0; step < steps; step++) {
              for (int i = 0; i < sum.length; i++) {
                reducer.gradient(0).setDouble(i, all[group.rank()][i / COLUMNS][i % COLUMNS]);
              }
              reducer.ready(0);
              reducer.await();
              for (int i = 0; i < sum.length; i++) {
                sum[i] += reducer.gradient(0).getDouble(i);
              }
            }
          }
          double missing = 0;
          double size = 0;
          for (int i = 0; i < sum.length; i++) {
            missing += (sum[i] - wanted[i]) * (sum[i] - wanted[i]);
            size += wanted[i] * wanted[i];
          }
          assertThat(Math.sqrt(missing / size)).isLessThan(0.2);
        });
  }

  @Test
  void newBucketsAfterTheFirstStepLoseNothing() {
    Worlds.THREADED.run(
        2,
        group -> {
          ReducerOptions options =
              ReducerOptions.DEFAULT
                  .withBucketBytes(1, 1)
                  .withHook(new PowerSgd(PowerSgdOptions.DEFAULT.withPlainSteps(0)));
          double[][] kept = sums(group, options.withoutRebuild());
          double[][] formedAnew = sums(group, options);
          assertThat(formedAnew).isDeepEqualTo(kept);
        });
  }

  /** Returns the sums of the means of two matrices that become ready in forward order. */
  private static double[][] sums(ProcessGroup group, ReducerOptions options) {
    double[][] sums = new double[2][ROWS * COLUMNS];
    double[][][] all = gradients(2, 0);
    try (GradientReducer reducer =
        new GradientReducer(
            group,
            List.of(
                Tensor.allocate(DType.FLOAT32, ROWS, COLUMNS),
                Tensor.allocate(DType.FLOAT32, ROWS, COLUMNS)),
            options)) {
      for (int step = 0; step < 4; step++) {
        for (int m = 0; m < 2; m++) {
          for (int i = 0; i < ROWS * COLUMNS; i++) {
            reducer.gradient(m).setDouble(i, all[group.rank()][i / COLUMNS][i % COLUMNS]);
          }
          reducer.ready(m);
        }
        reducer.await();
        for (int m = 0; m < 2; m++) {
          for (int i = 0; i < ROWS * COLUMNS; i++) {
            sums[m][i] += reducer.gradient(m).getDouble(i);
          }
        }
      }
    }
    return sums;
  }

  @Test
  void optionsAreChecked() {
    PowerSgdOptions options = PowerSgdOptions.DEFAULT;
    assertThatThrownBy(() -> options.withRank(0)).hasMessageContaining("at least 1, not 0");
    assertThatThrownBy(() -> options.withPlainSteps(-1)).hasMessageContaining("-1");
    assertThatThrownBy(() -> options.withLeastRate(0)).hasMessageContaining("positive");
    assertThatThrownBy(() -> options.withEpsilon(-1)).hasMessageContaining("negative");
    Tensor large = Tensor.allocate(DType.FLOAT32, 10, 5, 2);
    assertThat(options.compresses(large)).isTrue();
    assertThat(options.compresses(Tensor.allocate(DType.FLOAT32, 4, 4))).isFalse();
    assertThat(options.compresses(Tensor.allocate(DType.FLOAT32, 100))).isFalse();
    assertThat(options.compresses(Tensor.allocate(DType.FLOAT32, 0, 100))).isFalse();
    assertThat(options.withRank(3).compresses(large)).isFalse();
  }

  @Test
  void theStateIsAskedForOnceBeforeTheFirstStepAndBelongsToOneReducer() {
    Worlds.THREADED.run(
        1,
        group -> {
          List<Tensor> parameters = List.of(Tensor.allocate(DType.FLOAT32, ROWS, COLUMNS));
          PowerSgdOptions options = PowerSgdOptions.DEFAULT.withPlainSteps(1);
          PowerSgd hook = new PowerSgd(options);
          assertThatThrownBy(() -> hook.state(group, List.of(), parameters))
              .isInstanceOf(IllegalArgumentException.class)
              .hasMessage("1 parameters need as many different names, not []");
          ShardedState state = hook.state(group, List.of("w"), parameters);
          assertThat(state.parts())
              .map(Object::toString)
              .containsExactly("error/w[0:1230] of [1, 30, 41]", "q/w[0:41] of [1, 41]");
          assertThat(state.counters()).containsExactly(Map.entry("step", 0L));
          assertThatThrownBy(() -> state.restored(Map.of()))
              .isInstanceOf(IllegalArgumentException.class)
              .hasMessage("the counter 'step' must not be negative or missing in {}");
          assertThatThrownBy(() -> hook.state(group, List.of("w"), parameters))
              .isInstanceOf(IllegalStateException.class)
              .hasMessageContaining("once, before the first step");
          PowerSgd used = new PowerSgd(options.withoutErrorFeedback().withoutWarmStart());
          try (GradientReducer reducer =
              new GradientReducer(group, parameters, ReducerOptions.DEFAULT.withHook(used))) {
            reducer.ready(0);
            reducer.await();
          }
          assertThatThrownBy(() -> used.state(group, List.of("w"), parameters))
              .isInstanceOf(IllegalStateException.class);
          PowerSgd none = new PowerSgd(options.withoutErrorFeedback().withoutWarmStart());
          assertThat(none.state(group, List.of("w"), parameters).parts()).isEmpty();
          try (GradientReducer reducer =
              new GradientReducer(
                  group,
                  List.of(Tensor.allocate(DType.FLOAT32, COLUMNS, ROWS)),
                  ReducerOptions.DEFAULT.withHook(hook))) {
            reducer.ready(0);
            reducer.await();
            assertThat(state.counters()).containsExactly(Map.entry("step", 1L));
            reducer.ready(0);
            assertThatThrownBy(reducer::await)
                .hasStackTraceContaining(
                    "the state of this hook is that of another reducer: parameter 0 is"
                        + " float32[41, 30] on cpu here");
          }
        });
  }
}
