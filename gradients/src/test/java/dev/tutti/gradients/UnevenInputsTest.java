package dev.tutti.gradients;

import static dev.tutti.gradients.Steps.addTo;
import static dev.tutti.gradients.Steps.parameters;
import static dev.tutti.gradients.Steps.step;
import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.Registration;
import dev.tutti.Tensor;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** Tests ranks that have no inputs left before the others. */
class UnevenInputsTest {
  @Test
  void stepsWithoutInputsOnSomeRanksAreNotDigested() {
    Worlds.THREADED.run(
        2,
        group -> {
          ReducerOptions options =
              ReducerOptions.DEFAULT
                  .withDigest(1)
                  .withUnevenInputs(ReducerOptions.Divisor.GROUP_SIZE);
          List<Tensor> parameters = parameters(1);
          try (GradientReducer reducer = new GradientReducer(group, parameters, options)) {
            for (int step = 0; step < 2 * group.rank(); step++) {
              step(reducer, 1, 1);
              parameters.getFirst().setFloat(0, step + 5f);
            }
            reducer.join();
            assertThat(parameters.getFirst().getFloat(0)).isEqualTo(6);
            step(reducer, 1, 1);
          }
        });
  }

  @ParameterizedTest
  @EnumSource
  void aRankThatIsThroughShadowsTheOthers(Worlds world) {
    for (ReducerOptions.Divisor divisor : ReducerOptions.Divisor.values()) {
      world.run(
          3,
          group -> {
            List<Tensor> parameters = parameters(2, 3);
            ReducerOptions options =
                ReducerOptions.DEFAULT.withUnevenInputs(divisor).withBucketBytes(8, 8);
            try (GradientReducer reducer = new GradientReducer(group, parameters, options)) {
              for (int epoch = 0; epoch < 2; epoch++) {
                int steps = 2 * group.rank();
                for (int step = 0; step < steps; step++) {
                  step(reducer, 2, 6);
                  int active = step < 2 ? 2 : 1;
                  double divided = divisor == ReducerOptions.Divisor.GROUP_SIZE ? 3 : active;
                  assertThat(reducer.gradient(0).getDouble(0)).isEqualTo(6 * active / divided);
                }
                parameters.get(0).fill(group.rank() + epoch);
                reducer.join();
                assertThat(parameters.get(0).toDoubleArray()).containsOnly(2 + epoch);
              }
            }
          });
    }
  }

  @ParameterizedTest
  @EnumSource
  void gradientsAreZeroAfterAJoin(Worlds world) {
    world.run(
        2,
        group -> {
          ReducerOptions options =
              ReducerOptions.DEFAULT
                  .withUnevenInputs(ReducerOptions.Divisor.GROUP_SIZE)
                  .withBucketBytes(8, 8);
          try (GradientReducer reducer = new GradientReducer(group, parameters(2, 3), options)) {
            for (int epoch = 0; epoch < 2; epoch++) {
              for (int step = 0; step < 2 + group.rank(); step++) {
                addTo(reducer, 6);
                double mean = step < 2 ? 6 : 3;
                assertThat(reducer.gradient(0).toDoubleArray()).containsOnly(mean);
                assertThat(reducer.gradient(1).toDoubleArray()).containsOnly(mean);
                reducer.zeroGradients();
              }
              reducer.join();
              assertThat(reducer.gradient(0).toDoubleArray()).containsOnly(0);
            }
          }
        });
  }

  @Test
  void aJoinForgetsPassesWithoutSynchronisation() {
    Worlds.THREADED.run(
        2,
        group -> {
          ReducerOptions options =
              ReducerOptions.DEFAULT
                  .withUnusedParameters()
                  .withUnevenInputs(ReducerOptions.Divisor.GROUP_SIZE);
          try (GradientReducer reducer = new GradientReducer(group, parameters(1, 1), options)) {
            if (group.rank() == 0) {
              try (Registration _ = reducer.noSync()) {
                addTo(reducer, 8);
              }
            } else {
              addTo(reducer, 4);
            }
            reducer.join();
            reducer.gradient(1).fill(5);
            reducer.ready(1);
            reducer.await();
            assertThat(reducer.gradient(1).toDoubleArray()).containsOnly(5);
            assertThat(reducer.gradient(0).toDoubleArray()).containsOnly(0);
            assertThat(reducer.isUsed(0)).isFalse();
          }
        });
  }

  @Test
  void theStepsOfOthersAreNotInTheStatistics() {
    Worlds.THREADED.run(
        2,
        group -> {
          ReducerOptions options =
              ReducerOptions.DEFAULT.withUnevenInputs(ReducerOptions.Divisor.GROUP_SIZE);
          try (GradientReducer reducer = new GradientReducer(group, parameters(2, 3), options)) {
            for (int step = 0; step < 2 * group.rank(); step++) {
              step(reducer, 2, 1);
            }
            reducer.join();
            step(reducer, 2, 1);
            assertThat(reducer.statistics().bytes()).isEqualTo(20);
            assertThat(reducer.meanStatistics().bytes()).isEqualTo(20);
          }
        });
  }
}
