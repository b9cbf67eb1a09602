package dev.tutti.gradients;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.tutti.DType;
import dev.tutti.ProcessGroup;
import dev.tutti.Tensor;
import java.util.List;
import org.junit.jupiter.api.Test;

/** Tests that steps over a group are those of one reducer at a time. */
class StepTurnTest {
  private static GradientReducer reducer(ProcessGroup group) {
    return new GradientReducer(
        group, List.of(Tensor.allocate(DType.FLOAT32, 1), Tensor.allocate(DType.FLOAT32, 1)));
  }

  private static void step(GradientReducer reducer) {
    reducer.ready(1);
    reducer.ready(0);
    reducer.await();
  }

  @Test
  void reducersOfAGroupTakeStepsInTurn() {
    Worlds.THREADED.run(
        2,
        group -> {
          try (GradientReducer first = reducer(group);
              GradientReducer second = reducer(group)) {
            step(first);
            step(second);
            GradientReducer early = group.rank() == 0 ? first : second;
            GradientReducer late = group.rank() == 0 ? second : first;
            early.ready(1);
            assertThatThrownBy(() -> late.ready(1))
                .isInstanceOf(GradientException.class)
                .hasMessageContaining("another reducer of group 0 ended its step in await()");
          }
        });
  }

  @Test
  void theThreadsOfOneReducerTakeItsTurnTogether() {
    Worlds.THREADED.run(
        1,
        group -> {
          try (GradientReducer first = reducer(group);
              GradientReducer second = reducer(group)) {
            StepTurn turn = StepTurn.of(group);
            assertThat(turn.take(first)).isTrue();
            assertThat(turn.take(first)).isTrue();
            assertThat(turn.take(second)).isFalse();
            turn.release(second);
            assertThat(turn.take(second)).isFalse();
            turn.release(first);
            assertThat(turn.take(second)).isTrue();
          }
        });
  }
}
