package dev.tutti.checkpoint;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import dev.tutti.DType;
import dev.tutti.ProcessGroup;
import dev.tutti.Tensor;
import dev.tutti.checkpoint.disk.NioDisk;
import dev.tutti.fake.ThreadedWorld;
import dev.tutti.gradients.GradientReducer;
import dev.tutti.gradients.ReducerOptions;
import dev.tutti.gradients.optimizer.AdamW;
import dev.tutti.gradients.optimizer.OptimizerOptions;
import dev.tutti.gradients.optimizer.Sgd;
import dev.tutti.gradients.optimizer.ShardUpdate;
import dev.tutti.gradients.optimizer.ShardedOptimizer;
import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.TreeMap;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Tests that training continues from a checkpoint, on as many ranks as before or on others. */
class ReshardingTest {
  /** Not divisible by 2, 3 or 4, so that buckets have remainders and parts cross parameters. */
  private static final long[][] SHAPES = {{7, 11}, {1}, {13}, {}, {5, 3, 2}, {101}};

  private static final List<String> NAMES = List.of("a.w", "a.b", "b.w", "b.b", "c.w", "c.b");
  private static final int STEPS = 4;

  /** The loss scale with which a step finds an infinite gradient. */
  private static final double FIRST_SCALE = 8;

  @TempDir Path folder;

  /** The updates whose state is saved. */
  enum Update {
    ADAM,
    SCALED,
    MOMENTUM,
    PLAIN;

    ShardUpdate make() {
      return switch (this) {
        case ADAM, SCALED -> new AdamW(0.01);
        case MOMENTUM -> new Sgd(0.1, 0.9, 0.1, 0.01, false);
        case PLAIN -> new Sgd(0.1);
      };
    }

    /** Returns options by which the scale shrinks in the first half, and grows in the second. */
    OptimizerOptions options() {
      OptimizerOptions plain = OptimizerOptions.DEFAULT;
      return this == SCALED
          ? plain.withClipping(1).withLossScale(FIRST_SCALE, 2, 0.5, STEPS + 1)
          : plain;
    }
  }

  /** A model that is trained by made-up gradients, which depend on the step alone. */
  private static final class Trainer implements AutoCloseable {
    private final List<Tensor> parameters = new ArrayList<>();
    private final ShardedOptimizer optimizer;

    Trainer(ProcessGroup group, Update update) {
      Random random = new Random(5);
      for (long[] shape : SHAPES) {
        Tensor parameter = Tensor.allocate(DType.FLOAT32, shape);
        for (long i = 0; i < parameter.numel(); i++) {
          parameter.setDouble(i, random.nextGaussian());
        }
        parameters.add(parameter);
      }
      optimizer =
          new ShardedOptimizer(
              group,
              parameters,
              ReducerOptions.DEFAULT.withBucketBytes(100, 300),
              update.make(),
              update.options());
    }

    Contents contents() {
      return Contents.of()
          .copies("model", NAMES, parameters)
          .parts("optimizer", optimizer.state(NAMES));
    }

    void step() {
      GradientReducer reducer = optimizer.reducer();
      double scale = optimizer.lossScale().getDouble(0);
      boolean isTooLarge = optimizer.steps() == 1 && scale == FIRST_SCALE;
      for (int i = SHAPES.length - 1; i >= 0; i--) {
        Random random = new Random(31 * optimizer.steps() + i);
        Tensor gradient = reducer.gradient(i);
        for (long k = 0; k < gradient.numel(); k++) {
          gradient.setDouble(
              k, isTooLarge ? Double.POSITIVE_INFINITY : scale * random.nextGaussian());
        }
        reducer.ready(i);
      }
      optimizer.step();
    }

    /** Returns all parameters and the state of all ranks, by name and range. */
    Map<String, float[]> everything() {
      Map<String, float[]> all = new TreeMap<>();
      for (int i = 0; i < NAMES.size(); i++) {
        all.put(NAMES.get(i), parameters.get(i).toFloatArray());
      }
      optimizer
          .state(NAMES)
          .parts()
          .forEach(part -> all.put(part.toString(), part.elements().toFloatArray()));
      all.put("steps", new float[] {(float) optimizer.steps()});
      all.put("scale", optimizer.lossScale().toFloatArray());
      return all;
    }

    @Override
    public void close() {
      optimizer.close();
    }
  }

  /** Loads from a folder, trains, and saves to a folder, if there are any. */
  private static List<Map<String, float[]>> train(
      int ranks, Update update, @Nullable Path from, int steps, @Nullable Path to) {
    return ThreadedWorld.call(
        ranks,
        group -> {
          try (Trainer trainer = new Trainer(group, update)) {
            if (from != null) {
              try (Checkpoints saved = Checkpoints.in(group, from)) {
                long step = saved.loadLatest(trainer.contents()).orElseThrow();
                assertThat(trainer.optimizer.steps()).isEqualTo(step);
              }
            }
            for (int i = 0; i < steps; i++) {
              trainer.step();
            }
            if (to != null) {
              try (Checkpoints saved = Checkpoints.in(group, to)) {
                saved.save(trainer.optimizer.steps(), trainer.contents()).await();
              }
            }
            return trainer.everything();
          }
        });
  }

  private static void assertSame(
      List<Map<String, float[]>> actual, List<Map<String, float[]>> expected) {
    assertThat(actual).hasSameSizeAs(expected);
    for (int rank = 0; rank < actual.size(); rank++) {
      assertThat(actual.get(rank).keySet()).isEqualTo(expected.get(rank).keySet());
      for (String name : expected.get(rank).keySet()) {
        assertThat(actual.get(rank).get(name)).as(name).isEqualTo(expected.get(rank).get(name));
      }
    }
  }

  @ParameterizedTest
  @EnumSource
  void asManyRanksContinueBitForBit(Update update) {
    List<Map<String, float[]>> undisturbed = train(3, update, null, 2 * STEPS, null);
    train(3, update, null, STEPS, folder);
    assertSame(train(3, update, folder, STEPS, null), undisturbed);
  }

  @ParameterizedTest
  @EnumSource
  void otherNumbersOfRanksHaveTheSameState(Update update) {
    List<Map<String, float[]>> first = train(2, update, null, STEPS, folder);
    Map<Integer, List<Map<String, float[]>>> held = new TreeMap<>();
    Path from = folder;
    for (int ranks : new int[] {3, 4, 1}) {
      // Without a step, so all that is loaded is what was saved, by two ranks and then by others.
      Path to = folder.resolve("of-" + ranks);
      held.put(ranks, train(ranks, update, from, 0, to));
      from = to;
      for (Map<String, float[]> rank : held.get(ranks)) {
        for (String name : NAMES) {
          assertThat(rank.get(name)).as(name).isEqualTo(first.getFirst().get(name));
        }
      }
    }
    // One rank holds everything; what the ranks of the others hold is in it, range by range.
    Map<String, float[]> whole = new TreeMap<>();
    held.get(1).getFirst().forEach((key, value) -> whole.put(key.replaceAll("\\[.*", ""), value));
    for (List<Map<String, float[]>> world : List.of(first, held.get(3), held.get(4))) {
      for (Map<String, float[]> rank : world) {
        rank.forEach(
            (key, value) -> {
              if (key.contains("[")) {
                int start = Integer.parseInt(key.replaceAll(".*\\[(\\d+):.*\\].*\\[.*", "$1"));
                float[] all = whole.get(key.replaceAll("\\[.*", ""));
                assertThat(value)
                    .as(key)
                    .isEqualTo(Arrays.copyOfRange(all, start, start + value.length));
              }
            });
      }
    }
  }

  @ParameterizedTest
  @EnumSource
  void otherNumbersOfRanksContinueTheCurve(Update update) {
    List<Map<String, float[]>> undisturbed = train(2, update, null, 4 * STEPS, null);
    train(2, update, null, STEPS, folder);
    train(3, update, folder, STEPS, folder);
    train(4, update, folder, STEPS, folder);
    Map<String, float[]> last = train(1, update, folder, STEPS, null).getFirst();
    for (String name : NAMES) {
      assertThat(last.get(name))
          .as(name)
          .containsExactly(undisturbed.getFirst().get(name), within(1e-6f));
    }
    assertThat(last.get("steps")).isEqualTo(undisturbed.getFirst().get("steps"));
    assertThat(last.get("scale")).isEqualTo(undisturbed.getFirst().get("scale"));
  }

  /** Trains with a reducer and an update by hand, alike on all ranks; returns the parameters. */
  private List<float[]> trainByHand(boolean adam, int ranks, int until) {
    return ThreadedWorld.call(
        ranks,
        group -> {
          Tensor weight = Tensor.allocate(DType.FLOAT32, 301).fill(1);
          Tensor first = Tensor.allocate(DType.FLOAT32, 301);
          Tensor second = Tensor.allocate(DType.FLOAT32, 301);
          Contents contents =
              Contents.of()
                  .copies("model", List.of("w"), List.of(weight))
                  .copies("optimizer", List.of("first/w", "second/w"), List.of(first, second));
          try (GradientReducer reducer = new GradientReducer(group, List.of(weight));
              Checkpoints saved = Checkpoints.in(group, folder)) {
            long done = saved.loadLatest(contents).orElse(0);
            for (long step = done + 1; step <= until; step++) {
              step(adam, reducer, weight, first, second, step);
            }
            saved.save(until, contents).await();
          }
          return weight.toFloatArray();
        });
  }

  private static void step(
      boolean adam,
      GradientReducer reducer,
      Tensor weight,
      Tensor first,
      Tensor second,
      long step) {
    Random random = new Random(step);
    for (int i = 0; i < weight.numel(); i++) {
      reducer.gradient(0).setFloat(i, (float) random.nextGaussian());
    }
    reducer.ready(0);
    reducer.await();
    for (int i = 0; i < weight.numel(); i++) {
      float gradient = reducer.gradient(0).getFloat(i);
      if (adam) {
        first.setFloat(i, 0.9f * first.getFloat(i) + 0.1f * gradient);
        second.setFloat(i, 0.999f * second.getFloat(i) + 0.001f * gradient * gradient);
        double mean = first.getFloat(i) / (1 - Math.pow(0.9, (double) step));
        double square = second.getFloat(i) / (1 - Math.pow(0.999, (double) step));
        double decayed = 0.999 * weight.getFloat(i);
        weight.setFloat(i, (float) (decayed - 0.1 * mean / (Math.sqrt(square) + 1e-8)));
      } else {
        first.setFloat(i, 0.9f * first.getFloat(i) + gradient);
        weight.setFloat(i, weight.getFloat(i) - 0.1f * first.getFloat(i));
      }
    }
  }

  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void aReducerWithAnOptimizerByHandContinuesOnAnyNumberOfRanks(boolean adam) throws IOException {
    float[] undisturbed = trainByHand(adam, 2, 4 * STEPS).getFirst();
    NioDisk disk = new NioDisk();
    disk.delete(folder.resolve("step-" + 4 * STEPS));
    trainByHand(adam, 2, STEPS);
    assertThat(trainByHand(adam, 2, 4 * STEPS).getFirst()).isEqualTo(undisturbed);
    disk.delete(folder.resolve("step-" + 4 * STEPS));
    trainByHand(adam, 3, 2 * STEPS);
    trainByHand(adam, 4, 3 * STEPS);
    assertThat(trainByHand(adam, 1, 4 * STEPS).getFirst())
        .containsExactly(undisturbed, within(1e-6f));
  }

  @Test
  void stateThatTheProgramLacksIsNotDropped() {
    train(2, Update.ADAM, null, 1, folder);
    assertThatThrownBy(() -> train(3, Update.PLAIN, folder, 0, null))
        .hasStackTraceContaining(
            "the checkpoint has a tensor that no rank of the program has, 'exp_avg");
  }

  @Test
  void namesThatOccurTwiceAreRefused() {
    ThreadedWorld.run(
        1,
        group -> {
          try (Trainer trainer = new Trainer(group, Update.ADAM)) {
            assertThatThrownBy(() -> trainer.optimizer.state(List.of("a", "b", "c", "d", "e", "a")))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageStartingWith("a name occurs twice in [a, b, ");
          }
        });
  }
}
