package dev.tutti.gradients.optimizer;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import dev.tutti.DType;
import dev.tutti.ProcessGroup;
import dev.tutti.Registration;
import dev.tutti.Tensor;
import dev.tutti.gradients.GradientBucket;
import dev.tutti.gradients.GradientException;
import dev.tutti.gradients.GradientReducer;
import dev.tutti.gradients.ReducerOptions;
import dev.tutti.gradients.Worlds;
import dev.tutti.gradients.hook.Compression;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Iterator;
import java.util.List;
import java.util.Random;
import java.util.function.Supplier;
import java.util.stream.Stream;
import org.junit.jupiter.api.Order;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.MethodSource;

/** Tests that optimizers with sharded state give the same results as unsharded ones. */
@Order(1)
class ShardedOptimizerTest {
  private static final int STEPS = 6;

  private static List<Tensor> parameters(long seed) {
    Random random = new Random(seed);
    List<Tensor> all = new ArrayList<>();
    int count = 1 + random.nextInt(9);
    for (int i = 0; i < count; i++) {
      Tensor parameter =
          Tensor.allocate(DType.FLOAT32, random.nextInt(4) + 1, random.nextInt(3000));
      for (long k = 0; k < parameter.numel(); k++) {
        parameter.setDouble(k, random.nextGaussian());
      }
      all.add(parameter);
    }
    return all;
  }

  private static ReducerOptions options(long seed) {
    Random random = new Random(seed + 1);
    return ReducerOptions.DEFAULT.withBucketBytes(
        1 + random.nextInt(20_000), 1 + random.nextInt(60_000));
  }

  private static void backward(GradientReducer reducer, int count, long seed, int rank) {
    for (int i = count - 1; i >= 0; i--) {
      Random random = new Random(31 * seed + 7L * i + rank);
      Tensor gradient = reducer.gradient(i);
      for (long k = 0; k < gradient.numel(); k++) {
        gradient.setDouble(k, random.nextGaussian());
      }
      reducer.ready(i);
    }
  }

  /**
   * Makes the sum use the order of a reduce-scatter. For threads and shared memory, an all-reduce
   * already uses that order.
   */
  private static ReducerOptions whole(Worlds world, ReducerOptions options) {
    ReducerOptions kept = options.withoutRebuild();
    return world == Worlds.SOCKETS ? kept.withHook(ShardedOptimizerTest::inTwoHalves) : kept;
  }

  private static void inTwoHalves(GradientBucket bucket, ProcessGroup group) {
    Tensor tensor = bucket.tensor();
    long part = tensor.numel() / group.size();
    Tensor parts = tensor.narrow(0, 0, part * group.size());
    Tensor own = Tensor.allocate(DType.FLOAT32, part);
    group.reduceScatterInto(own, parts.copy(), bucket.mean());
    group.allGatherInto(parts, own);
    Tensor rest = tensor.narrow(0, parts.numel(), tensor.numel() - parts.numel());
    group.allReduce(rest, bucket.mean());
  }

  private static void compare(Worlds world, int ranks, long seed, Supplier<ShardUpdate> update) {
    compare(world, ranks, seed, update, OptimizerOptions.DEFAULT);
  }

  private static void compare(
      Worlds world, int ranks, long seed, Supplier<ShardUpdate> update, OptimizerOptions more) {
    world.run(
        ranks,
        group -> {
          List<Tensor> whole = parameters(seed);
          List<Tensor> given = parameters(seed);
          ShardUpdate plain = update.get();
          List<List<Tensor>> states =
              whole.stream().map(each -> plain.allocate(each.flatten())).toList();
          try (GradientReducer reducer =
                  new GradientReducer(group, whole, whole(world, options(seed)));
              ShardedOptimizer optimizer =
                  new ShardedOptimizer(group, given, options(seed), update.get(), more)) {
            List<Tensor> sharded = optimizer.parameters();
            for (int step = 1; step <= STEPS; step++) {
              backward(reducer, whole.size(), 100 * seed + step, group.rank());
              reducer.await();
              for (int i = 0; i < whole.size(); i++) {
                plain.update(
                    step, whole.get(i).flatten(), reducer.gradient(i).flatten(), states.get(i));
              }
              backward(optimizer.reducer(), whole.size(), 100 * seed + step, group.rank());
              optimizer.step();
              for (int i = 0; i < whole.size(); i++) {
                assertThat(sharded.get(i).view(DType.INT32).toIntArray())
                    .as("bits of parameter %d after step %d, seed %d", i, step, seed)
                    .isEqualTo(whole.get(i).view(DType.INT32).toIntArray());
              }
            }
            assertThat(optimizer.steps()).isEqualTo(STEPS);
            long all = whole.stream().mapToLong(Tensor::numel).sum();
            long own = optimizer.state().stream().mapToLong(Tensor::numel).sum();
            long copies = plain.allocate(whole.getFirst().flatten()).size();
            int buckets = optimizer.reducer().buckets().size();
            assertThat(own)
                .isBetween(
                    copies * (all / ranks - (long) ranks * buckets),
                    copies * (all / ranks + (long) ranks * buckets));
          }
        });
  }

  @ParameterizedTest
  @EnumSource
  void gradientDescentIsThatOfOneRankBitForBit(Worlds world) {
    for (int ranks = 1; ranks <= 4; ranks++) {
      compare(world, ranks, 10 + ranks, () -> new Sgd(0.1));
      compare(world, ranks, 20 + ranks, () -> new Sgd(0.1, 0.9, 0, 0.01, true));
      compare(world, ranks, 30 + ranks, () -> new Sgd(0.1, 0.9, 0.2, 0, false));
    }
  }

  @ParameterizedTest
  @EnumSource
  void adamIsThatOfOneRankBitForBit(Worlds world) {
    for (int ranks = 2; ranks <= 4; ranks++) {
      compare(world, ranks, 40 + ranks, () -> new AdamW(0.01));
    }
  }

  @Test
  void flatParametersAreChangedAlike() {
    OptimizerOptions flat = OptimizerOptions.DEFAULT.withFlatParameters();
    for (int ranks = 1; ranks <= 3; ranks++) {
      compare(Worlds.THREADED, ranks, 60 + ranks, () -> new AdamW(0.01), flat);
    }
  }

  private static void train(ShardedOptimizer optimizer, int count, int from, int to, int rank) {
    for (int step = from; step <= to; step++) {
      backward(optimizer.reducer(), count, step, rank);
      optimizer.step();
    }
  }

  @ParameterizedTest
  @MethodSource("updates")
  void aResumedOptimizerContinuesBitForBit(Supplier<ShardUpdate> update) {
    Worlds.THREADED.run(
        3,
        group -> {
          List<Tensor> weights = parameters(50);
          int count = weights.size();
          List<Tensor> savedWeights;
          List<Tensor> savedState;
          try (ShardedOptimizer optimizer =
              new ShardedOptimizer(group, weights, options(50), update.get())) {
            train(optimizer, count, 1, 5, group.rank());
            savedWeights = weights.stream().map(Tensor::copy).toList();
            savedState = optimizer.state().stream().map(Tensor::copy).toList();
            assertThat(optimizer.steps()).isEqualTo(5);
            train(optimizer, count, 6, 8, group.rank());
          }
          try (ShardedOptimizer resumed =
              new ShardedOptimizer(group, savedWeights, options(50), update.get())) {
            for (int i = 0; i < savedState.size(); i++) {
              resumed.state().get(i).copyFrom(savedState.get(i).toFloatArray());
            }
            resumed.setSteps(5);
            train(resumed, count, 6, 8, group.rank());
            assertThat(resumed.steps()).isEqualTo(8);
            for (int i = 0; i < count; i++) {
              assertThat(savedWeights.get(i).view(DType.INT32).toIntArray())
                  .isEqualTo(weights.get(i).view(DType.INT32).toIntArray());
            }
            assertThatThrownBy(() -> resumed.setSteps(-1))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessage("steps must be at least 0, not -1");
          }
        });
  }

  static Stream<Supplier<ShardUpdate>> updates() {
    return Stream.of(() -> new AdamW(0.01), () -> new Sgd(0.1, 0.9, 0.2, 0, false));
  }

  @Test
  void theStateIsLaidOutAsDocumented() {
    int ranks = 3;
    Worlds.THREADED.run(
        ranks,
        group -> {
          List<Tensor> whole = parameters(60);
          AdamW plain = new AdamW(0.01);
          List<List<Tensor>> states =
              whole.stream().map(each -> plain.allocate(each.flatten())).toList();
          try (GradientReducer reducer = new GradientReducer(group, whole);
              ShardedOptimizer optimizer =
                  new ShardedOptimizer(group, parameters(60), options(60), new AdamW(0.01))) {
            backward(reducer, whole.size(), 1, group.rank());
            reducer.await();
            for (int i = 0; i < whole.size(); i++) {
              plain.update(1, whole.get(i).flatten(), reducer.gradient(i).flatten(), states.get(i));
            }
            train(optimizer, whole.size(), 1, 1, group.rank());
            Iterator<Tensor> state = optimizer.state().iterator();
            List<GradientBucket> buckets = optimizer.reducer().buckets();
            assertThat(buckets).hasSizeGreaterThan(1);
            for (GradientBucket bucket : buckets) {
              int numel = Math.toIntExact(bucket.tensor().numel());
              int part = numel / ranks;
              for (int[] range :
                  new int[][] {
                    {group.rank() * part, group.rank() * part + part}, {ranks * part, numel}
                  }) {
                for (int kind = 0; kind < 2; kind++) {
                  assertThat(state.next().toFloatArray())
                      .isEqualTo(
                          Arrays.copyOfRange(stateOf(bucket, states, kind), range[0], range[1]));
                }
              }
            }
            assertThat(state.hasNext()).isFalse();
          }
        });
  }

  private static float[] stateOf(GradientBucket bucket, List<List<Tensor>> states, int kind) {
    Tensor all = Tensor.allocate(DType.FLOAT32, bucket.tensor().numel());
    long position = 0;
    for (int parameter : bucket.parameters()) {
      Tensor own = states.get(parameter).get(kind);
      all.narrow(0, position, own.numel()).copyFrom(own.toFloatArray());
      position += own.numel();
    }
    return all.toFloatArray();
  }

  @Test
  void updatesAreThoseOfTheFormulas() {
    int numel = 5000;
    Random random = new Random(1);
    double[] p = new double[numel];
    double[] a = new double[numel];
    double[] velocity = new double[numel];
    double[] mean = new double[numel];
    double[] square = new double[numel];
    Tensor sgdParameters = Tensor.allocate(DType.FLOAT32, numel);
    Tensor adamParameters = Tensor.allocate(DType.FLOAT32, numel);
    for (int i = 0; i < numel; i++) {
      p[i] = (float) random.nextGaussian();
      a[i] = p[i];
      sgdParameters.setDouble(i, p[i]);
      adamParameters.setDouble(i, p[i]);
    }
    Sgd sgd = new Sgd(0.5, 0.8, 0.1, 0.05, false);
    sgd.setLearningRate(0.03);
    AdamW adam = new AdamW(0.02, 0.85, 0.95, 1e-7, 0.1);
    List<Tensor> sgdState = sgd.allocate(sgdParameters);
    List<Tensor> adamState = adam.allocate(adamParameters);
    assertThat(sgdState).hasSize(1);
    assertThat(adamState).hasSize(2);
    for (int step = 1; step <= 10; step++) {
      Tensor gradients = Tensor.allocate(DType.FLOAT32, numel);
      for (int i = 0; i < numel; i++) {
        double g = (float) random.nextGaussian();
        gradients.setDouble(i, g);
        double decayed = g + 0.05 * p[i];
        velocity[i] = step == 1 ? decayed : 0.8 * velocity[i] + 0.9 * decayed;
        p[i] -= 0.03 * velocity[i];
        a[i] *= 1 - 0.02 * 0.1;
        mean[i] = 0.85 * mean[i] + 0.15 * g;
        square[i] = 0.95 * square[i] + 0.05 * g * g;
        double corrected = mean[i] / (1 - Math.pow(0.85, step));
        a[i] -= 0.02 * corrected / (Math.sqrt(square[i] / (1 - Math.pow(0.95, step))) + 1e-7);
      }
      sgd.update(step, sgdParameters, gradients, sgdState);
      adam.update(step, adamParameters, gradients, adamState);
    }
    assertThat(sgdParameters.toDoubleArray()).containsExactly(p, within(2e-6));
    assertThat(adamParameters.toDoubleArray()).containsExactly(a, within(5e-6));
  }

  @Test
  void passesAddUp() {
    Worlds.SHARED_MEMORY.run(
        2,
        group -> {
          List<Tensor> parameters = List.of(Tensor.allocate(DType.FLOAT32, 7));
          try (ShardedOptimizer optimizer =
              new ShardedOptimizer(group, parameters, ReducerOptions.DEFAULT, new Sgd(1))) {
            GradientReducer reducer = optimizer.reducer();
            try (Registration _ = reducer.noSync()) {
              reducer.gradient(0).fill(1 + group.rank());
              reducer.ready(0);
              reducer.await();
            }
            for (long i = 0; i < 7; i++) {
              reducer.gradient(0).setDouble(i, 2 * reducer.gradient(0).getDouble(i));
            }
            reducer.ready(0);
            optimizer.step();
            assertThat(parameters.getFirst().toDoubleArray()).containsOnly(-3);
          }
        });
  }

  private static void step(ShardedOptimizer optimizer, float... gradients) {
    optimizer.reducer().gradient(0).copyFrom(gradients);
    optimizer.reducer().ready(0);
    optimizer.step();
  }

  @Test
  void largeGradientsAreClippedByTheNormOfAll() {
    Worlds.THREADED.run(
        2,
        group -> {
          Tensor weights = Tensor.of(0f, 0f, 0f);
          OptimizerOptions clips = OptimizerOptions.DEFAULT.withClipping(1);
          try (ShardedOptimizer optimizer =
              new ShardedOptimizer(
                  group, List.of(weights), ReducerOptions.DEFAULT, new Sgd(1), clips)) {
            step(optimizer, 2 + group.rank(), 3, 6);
            // The mean is 2.5, 3, 6, whose norm is 7.159...
            double norm = Math.sqrt(2.5 * 2.5 + 9 + 36);
            assertThat(optimizer.gradientNorm()).isCloseTo(norm, within(1e-12));
            double factor = 1 / (norm + 1e-6);
            assertThat(weights.toDoubleArray())
                .containsExactly(
                    new double[] {-2.5 * factor, -3 * factor, -6 * factor}, within(1e-6));
            step(optimizer, 0.5f, 0, 0);
            assertThat(weights.getDouble(0)).isCloseTo(-2.5 * factor - 0.5, within(1e-6));
            assertThat(optimizer.lossScale().getDouble(0)).isEqualTo(1);
          }
        });
  }

  @Test
  void theLossScaleShrinksAfterAnInfiniteGradientAndGrowsLater() {
    Worlds.THREADED.run(
        2,
        group -> {
          Tensor weights = Tensor.of(0f, 0f, 0f);
          OptimizerOptions scales = OptimizerOptions.DEFAULT.withLossScale(8, 4, 0.5, 2);
          List<Double> seen = new ArrayList<>();
          try (ShardedOptimizer optimizer =
              new ShardedOptimizer(
                  group, List.of(weights), ReducerOptions.DEFAULT, new Sgd(1), scales)) {
            for (int step = 1; step <= 5; step++) {
              float scale = optimizer.lossScale().getFloat(0);
              seen.add((double) scale);
              boolean isBad = step == 2 && group.rank() == 1;
              step(optimizer, scale, isBad ? Float.NaN : 2 * scale, 0);
            }
            assertThat(seen).containsExactly(8.0, 8.0, 4.0, 4.0, 16.0);
            assertThat(weights.toFloatArray()).containsExactly(-4, -8, 0);
            assertThat(optimizer.steps()).isEqualTo(4);
          }
        });
  }

  @Test
  void optionsThatMakeNoSenseAreRefused() {
    OptimizerOptions plain = OptimizerOptions.DEFAULT;
    for (double norm : new double[] {0, -1, Double.NaN, Double.POSITIVE_INFINITY}) {
      assertThatThrownBy(() -> plain.withClipping(norm))
          .hasMessage(
              "the largest norm must be positive and finite, not %s; omit withClipping to clip"
                  + " nothing",
              norm);
    }
    for (double bad : new double[] {0, -1, Double.NaN, Double.POSITIVE_INFINITY}) {
      assertThatThrownBy(() -> plain.withLossScale(bad, 2, 0.5, 1))
          .hasMessage("a loss scale must be positive and at most 3.4e38 at first, not %s", bad);
      assertThatThrownBy(() -> plain.withLossScale(1, bad, 0.5, 1))
          .hasMessage("a loss scale must grow by a finite factor of at least 1, not %s", bad);
      assertThatThrownBy(() -> plain.withLossScale(1, 2, bad, 1))
          .hasMessage("a loss scale must shrink by a factor above 0 and up to 1, not %s", bad);
    }
    assertThatThrownBy(() -> plain.withLossScale(1, 2, 0.5, 0))
        .hasMessage("a loss scale must grow after at least 1 step, not 0");
  }

  @Test
  void whatDoesNotFitIsRefused() {
    Worlds.THREADED.run(
        1,
        group -> {
          List<Tensor> one = List.of(Tensor.of(1f, 2f));
          ReducerOptions plain = ReducerOptions.DEFAULT;
          for (ReducerOptions options :
              List.of(
                  plain.withUnusedParameters(),
                  plain.withGradients(one),
                  plain.withHook(Compression.float16()),
                  plain.withUnevenInputs(ReducerOptions.Divisor.GROUP_SIZE))) {
            assertThatThrownBy(() -> new ShardedOptimizer(group, one, options, new Sgd(1)))
                .hasMessageContaining("does not support gradients elsewhere");
          }
          for (Tensor wrong :
              List.of(Tensor.of(1.0), Tensor.allocate(DType.FLOAT32, 2, 3).transpose(0, 1))) {
            assertThatThrownBy(
                    () -> new ShardedOptimizer(group, List.of(wrong), plain, new AdamW(1)))
                .hasMessageContaining("parameter 0 must be contiguous")
                .hasMessageContaining("AdamW");
          }
          assertThatThrownBy(() -> new Sgd(-1)).hasMessageContaining("learning rate");
          assertThatThrownBy(() -> new Sgd(Double.NaN)).hasMessageContaining("learning rate");
          assertThatThrownBy(() -> new Sgd(1, 2, 0, 0, false)).hasMessageContaining("momentum");
          assertThatThrownBy(() -> new Sgd(1, 0, 0, -1, false)).hasMessageContaining("decay");
          assertThatThrownBy(() -> new Sgd(1, 0, 0, 0, true)).hasMessageContaining("Nesterov");
          assertThatThrownBy(() -> new AdamW(1, 1, 0, 0, 0)).hasMessageContaining("betas");
          assertThatThrownBy(() -> new AdamW(1, 0, 0, -1, 0)).hasMessageContaining("epsilon");
          try (ShardedOptimizer optimizer = new ShardedOptimizer(group, one, plain, new Sgd(1))) {
            assertThatThrownBy(optimizer::step)
                .isInstanceOf(GradientException.class)
                .hasMessageContaining("parameter 0 is missing");
          }
        });
  }
}
