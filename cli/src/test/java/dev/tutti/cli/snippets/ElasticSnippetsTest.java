package dev.tutti.cli.snippets;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.DType;
import dev.tutti.ProcessGroup;
import dev.tutti.Tensor;
import dev.tutti.checkpoint.Contents;
import dev.tutti.checkpoint.Elastic;
import dev.tutti.checkpoint.ElasticOptions;
import dev.tutti.fake.ThreadedWorld;
import dev.tutti.gradients.GradientReducer;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;

/** Runs the example of elastic jobs. */
class ElasticSnippetsTest {
  private static final long STEPS = 20;

  private static void backward(GradientReducer reducer, int rank) {
    for (int i = 1; i >= 0; i--) {
      reducer.gradient(i).fill(rank + 1);
      reducer.ready(i);
    }
  }

  private static void update(Tensor parameter, Tensor gradient) {
    parameter.setFloat(0, parameter.getFloat(0) - gradient.getFloat(0));
  }

  private static void train(ProcessGroup joined, List<Tensor> parameters) throws Exception {
    // @start region="elastic"
    ElasticOptions options = ElasticOptions.DEFAULT.withSize(2, 8);
    List<String> names = List.of("weight", "bias");
    Elastic.run(
        joined,
        options,
        generation -> {
          try (GradientReducer reducer = new GradientReducer(generation.group(), parameters)) {
            Contents state = Contents.of().copies("model", names, parameters);
            for (long step = generation.restore(state); step < STEPS; step++) {
              backward(reducer, generation.group().rank());
              reducer.await();
              update(parameters.get(0), reducer.gradient(0));
              generation.commit(step + 1);
            }
          }
        });
    // @end
  }

  @Test
  void elastic() {
    AtomicInteger right = new AtomicInteger();
    ThreadedWorld.of(2)
        .run(
            group -> {
              List<Tensor> parameters =
                  List.of(Tensor.allocate(DType.FLOAT32, 4, 3), Tensor.allocate(DType.FLOAT32, 4));
              train(group, parameters);
              assertThat(parameters.getFirst().getFloat(0)).isEqualTo(-1.5f * STEPS);
              right.incrementAndGet();
            });
    assertThat(right.get()).isEqualTo(2);
  }
}
