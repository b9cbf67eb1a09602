package dev.tutti.cli.snippets;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.DType;
import dev.tutti.ProcessGroup;
import dev.tutti.Tensor;
import dev.tutti.checkpoint.Checkpoints;
import dev.tutti.checkpoint.Contents;
import dev.tutti.checkpoint.StoredCheckpoint;
import dev.tutti.fake.ThreadedWorld;
import dev.tutti.gradients.ReducerOptions;
import dev.tutti.gradients.optimizer.AdamW;
import dev.tutti.gradients.optimizer.ShardedOptimizer;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Runs the examples of checkpoints. */
class CheckpointSnippetsTest {
  private static final int STEPS = 20;

  @TempDir Path folder;

  private static void step(ShardedOptimizer optimizer, int parameters) {
    for (int i = parameters - 1; i >= 0; i--) {
      optimizer.reducer().gradient(i).fill(1);
      optimizer.reducer().ready(i);
    }
    optimizer.step();
  }

  private void train(ProcessGroup group, long until) {
    // @start region="checkpoints"
    List<String> names = List.of("layer1.weight", "layer1.bias");
    List<Tensor> parameters =
        List.of(Tensor.allocate(DType.FLOAT32, 4, 3), Tensor.allocate(DType.FLOAT32, 4));
    try (ShardedOptimizer optimizer =
            new ShardedOptimizer(group, parameters, ReducerOptions.DEFAULT, new AdamW(0.01));
        Checkpoints saved = Checkpoints.in(group, folder).keeping(3)) {
      Contents contents =
          Contents.of()
              .copies("model", names, parameters) // alike on all ranks: each writes a share
              .parts("optimizer", optimizer.state(names)); // each rank has a part of it
      long start = saved.loadLatest(contents).orElse(0); // after the constructors, on all ranks
      for (long step = start + 1; step <= until; step++) {
        step(optimizer, parameters.size());
        if (step % 10 == 0) {
          saved.save(step, contents); // copied; the files are written while training continues
        }
      }
    } // waits for the last save
    // @end
  }

  @Test
  void trainingContinuesOnAnotherNumberOfRanks() throws Exception {
    ThreadedWorld.run(2, group -> train(group, STEPS));
    ThreadedWorld.run(3, group -> train(group, STEPS + 15));
    assertThat(StoredCheckpoint.steps(folder)).containsExactly(10L, 20L, 30L);
  }
}
