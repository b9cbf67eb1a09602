package dev.tutti.cli.snippets;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.DType;
import dev.tutti.Tensor;
import dev.tutti.fake.RankBody;
import dev.tutti.fake.ThreadedWorld;
import dev.tutti.gradients.GradientReducer;
import dev.tutti.gradients.ReducerOptions;
import dev.tutti.gradients.hook.Compression;
import dev.tutti.gradients.optimizer.Sgd;
import dev.tutti.gradients.optimizer.ShardedOptimizer;
import java.time.Duration;
import java.util.List;
import org.junit.jupiter.api.Test;

/** Runs the examples of the packages of gradients. */
class GradientSnippetsTest {
  private static List<Tensor> parameters() {
    return List.of(Tensor.allocate(DType.FLOAT32, 4, 3), Tensor.allocate(DType.FLOAT32, 4));
  }

  /** Runs a body on each rank, on a busy machine for longer than by default. */
  private static void run(int size, RankBody body) {
    ThreadedWorld.of(size).withTimeout(Duration.ofMinutes(4)).run(body);
  }

  @Test
  void reducer() {
    run(
        2,
        group -> {
          List<Tensor> parameters = parameters();
          // @start region="reducer"
          try (GradientReducer reducer = new GradientReducer(group, parameters)) {
            for (int i = parameters.size() - 1; i >= 0; i--) { // as the backward pass produces them
              reducer.gradient(i).fill(group.rank());
              reducer.ready(i); // full buckets are reduced in the meantime
            }
            reducer.await(); // now each gradient is the mean of all ranks
            assertThat(reducer.gradient(0).getFloat(0)).isEqualTo(0.5f); // of 0 and 1
          }
          // @end
        });
  }

  @Test
  void hook() {
    // @start region="hook"
    ReducerOptions options = ReducerOptions.DEFAULT.withHook(Compression.bfloat16());
    // @end
    run(
        2,
        group -> {
          try (GradientReducer reducer = new GradientReducer(group, parameters(), options)) {
            for (int i = 1; i >= 0; i--) {
              reducer.gradient(i).fill(group.rank());
              reducer.ready(i);
            }
            reducer.await();
            assertThat(reducer.gradient(1).getFloat(0)).isEqualTo(0.5f);
          }
        });
  }

  @Test
  void optimizer() {
    run(
        2,
        group -> {
          List<Tensor> parameters = parameters();
          // @start region="optimizer"
          try (ShardedOptimizer optimizer =
              new ShardedOptimizer(group, parameters, ReducerOptions.DEFAULT, new Sgd(0.1))) {
            for (int i = parameters.size() - 1; i >= 0; i--) {
              optimizer.reducer().gradient(i).fill(group.rank());
              optimizer.reducer().ready(i);
            }
            optimizer.step(); // the parameters of all ranks are the same again
          }
          // @end
          assertThat(parameters.getFirst().getFloat(0)).isEqualTo(-0.05f);
        });
  }
}
