package dev.tutti.gradients.hook;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.tutti.DType;
import dev.tutti.ProcessGroup;
import dev.tutti.Tensor;
import dev.tutti.gradients.GradientException;
import dev.tutti.gradients.GradientReducer;
import dev.tutti.gradients.ReducerOptions;
import dev.tutti.gradients.Worlds;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

@Timeout(300)
class StripedAllReduceTest {
  private static final int LARGE = 900_001;
  private static final int SMALL = 1000;

  @ParameterizedTest
  @EnumSource
  void meansAreThoseOfAllRanks(Worlds world) {
    world.run(
        3,
        group -> {
          List<Tensor> parameters =
              Stream.of(LARGE, SMALL).map(n -> Tensor.allocate(DType.FLOAT32, n)).toList();
          try (StripedAllReduce hook = StripedAllReduce.over(group, 3);
              GradientReducer reducer = reducer(group, parameters, hook)) {
            for (int step = 0; step < 4; step++) {
              for (int i = 1; i >= 0; i--) {
                reducer.gradient(i).copyFrom(values(parameters.get(i), step, group.rank()));
                reducer.ready(i);
              }
              reducer.await();
              for (int i = 0; i < 2; i++) {
                assertThat(reducer.gradient(i).toFloatArray())
                    .isEqualTo(values(parameters.get(i), step, 1));
              }
            }
          }
        });
  }

  private static GradientReducer reducer(
      ProcessGroup group, List<Tensor> parameters, StripedAllReduce hook) {
    return new GradientReducer(
        group, parameters, ReducerOptions.DEFAULT.withHook(hook).withBucketBytes(4, 4));
  }

  /** Returns whole numbers whose mean over ranks 0 to 2 equals the values of rank 1. */
  private static float[] values(Tensor like, int step, int rank) {
    float[] values = new float[(int) like.numel()];
    for (int i = 0; i < values.length; i++) {
      values[i] = i % 1000 * (rank + step);
    }
    return values;
  }

  @Test
  void aRankThatFailsFailsTheStripesOfAll() {
    CountDownLatch through = new CountDownLatch(3);
    Worlds.SOCKETS
        .of(3)
        .withTimeout(Duration.ofMinutes(10))
        .run(
            group -> {
              List<Tensor> parameters = List.of(Tensor.allocate(DType.FLOAT32, LARGE));
              try (StripedAllReduce hook = StripedAllReduce.over(group, 2);
                  GradientReducer reducer = reducer(group, parameters, hook)) {
                // The abort would also end the set-up of a rank that has not finished it yet.
                through.countDown();
                assertThat(through.await(4, TimeUnit.MINUTES)).isTrue();
                if (group.rank() == 1) {
                  group.abort("no more gradients here");
                }
                assertThatThrownBy(
                        () -> {
                          reducer.ready(0);
                          reducer.await();
                        })
                    .isInstanceOf(GradientException.class)
                    .hasMessageContaining("no more gradients here");
              }
            });
  }

  @Test
  void aBucketHasAtLeastOneStripe() {
    Worlds.THREADED.run(
        1,
        group ->
            assertThatThrownBy(() -> StripedAllReduce.over(group, 0))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining("not 0"));
  }
}
