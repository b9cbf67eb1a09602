package dev.tutti.djl;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import ai.djl.Model;
import ai.djl.engine.Engine;
import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDList;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.types.Shape;
import ai.djl.nn.Activation;
import ai.djl.nn.SequentialBlock;
import ai.djl.nn.core.Linear;
import ai.djl.training.DefaultTrainingConfig;
import ai.djl.training.GradientCollector;
import ai.djl.training.Trainer;
import ai.djl.training.loss.Loss;
import ai.djl.training.optimizer.Optimizer;
import ai.djl.training.tracker.Tracker;
import dev.tutti.ProcessGroup;
import dev.tutti.Tensor;
import dev.tutti.checkpoint.Checkpoints;
import dev.tutti.checkpoint.Contents;
import dev.tutti.gradients.ReducerOptions;
import dev.tutti.gradients.optimizer.AdamW;
import dev.tutti.gradients.optimizer.ShardedOptimizer;
import dev.tutti.testing.World;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.Random;
import java.util.stream.IntStream;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Timeout;

/** Tests that a DJL model continues from a checkpoint on as many ranks as before or on others. */
@Timeout(600)
class ResumeTest {
  private static final int STEPS = 3;

  @BeforeAll
  static void load() {
    Engine.getInstance();
  }

  /**
   * Trains until a step on the first ranks, from the last checkpoint if there is one, and returns
   * the parameters on rank 0.
   */
  private static List<float[]> train(
      ProcessGroup all, boolean sharded, int ranks, int until, String name) {
    // A process can train one DJL model at a time, so threads will not do.
    long launcher = ProcessHandle.current().parent().orElseThrow().pid(); // the same on all ranks
    Path folder = Path.of("target", "resume-" + launcher, sharded + "-" + name);
    Optional<ProcessGroup> some = all.subgroup(IntStream.range(0, ranks).boxed().toList());
    List<float[]> parameters =
        some.map(group -> train(group, sharded, until, folder)).orElse(List.of());
    some.ifPresent(ProcessGroup::close);
    all.barrier();
    return parameters;
  }

  private static List<float[]> train(ProcessGroup group, boolean sharded, int until, Path saves) {
    DataParallelListener parallel = new DataParallelListener(group);
    DefaultTrainingConfig config =
        new DefaultTrainingConfig(Loss.l2Loss())
            .optOptimizer(Optimizer.sgd().setLearningRateTracker(Tracker.fixed(0.1f)).build())
            .addTrainingListeners(parallel);
    try (Model model = Model.newInstance("net");
        NDManager manager = model.getNDManager().newSubManager()) {
      model.setBlock(
          new SequentialBlock()
              .add(Linear.builder().setUnits(7).build())
              .add(Activation.sigmoidBlock())
              .add(Linear.builder().setUnits(3).build()));
      try (Trainer trainer = model.newTrainer(config);
          Checkpoints saved = Checkpoints.in(group, saves)) {
        trainer.initialize(new Shape(4, 5));
        parallel.start(trainer);
        List<String> names = List.copyOf(parallel.parameters().keySet());
        List<Tensor> parameters = List.copyOf(parallel.parameters().values());
        Contents contents = Contents.of().copies("model", names, parameters);
        ShardedOptimizer optimizer = null;
        if (sharded) {
          optimizer =
              new ShardedOptimizer(group, parameters, ReducerOptions.DEFAULT, new AdamW(0.01));
          contents = contents.parts("optimizer", optimizer.state(names));
        }
        long done = saved.loadLatest(contents).orElse(-1);
        if (done < 0) {
          // The first job begins with known values, and others must not.
          Random random = new Random(1);
          parameters.forEach(each -> fill(each, random));
          done = 0;
        }
        for (long step = done + 1; step <= until; step++) {
          Random random = new Random(step);
          NDArray input = manager.create(floats(random, 20), new Shape(4, 5));
          NDArray wanted = manager.create(floats(random, 12), new Shape(4, 3));
          try (GradientCollector collector = trainer.newGradientCollector()) {
            NDList out = trainer.forward(new NDList(input));
            collector.backward(trainer.getLoss().evaluate(new NDList(wanted), out));
          }
          if (optimizer == null) {
            parallel.reduceGradients();
            trainer.step();
          } else {
            step(model, names, optimizer);
          }
        }
        saved.save(until, contents).await();
        if (optimizer != null) {
          optimizer.close();
        }
        List<float[]> all = new ArrayList<>();
        model
            .getBlock()
            .getParameters()
            .forEach(each -> all.add(each.getValue().getArray().toFloatArray()));
        return all;
      }
    }
  }

  /** Takes a step of an optimizer that is divided among the ranks, instead of DJL's. */
  private static void step(Model model, List<String> names, ShardedOptimizer optimizer) {
    for (int i = names.size() - 1; i >= 0; i--) {
      NDArray gradient =
          model.getBlock().getParameters().get(names.get(i)).getArray().getGradient();
      optimizer.reducer().gradient(i).copyFrom(gradient.toFloatArray());
      gradient.muli(0); // or else the next ones are added
      optimizer.reducer().ready(i);
    }
    optimizer.step();
  }

  private static float[] floats(Random random, int count) {
    float[] floats = new float[count];
    for (int i = 0; i < count; i++) {
      floats[i] = (float) random.nextGaussian();
    }
    return floats;
  }

  private static void fill(Tensor tensor, Random random) {
    tensor.copyFrom(floats(random, (int) tensor.numel()));
  }

  @World(size = 4, backends = "gloo", processes = true, timeoutSeconds = 500)
  void theModelContinuesOnAnyNumberOfRanks(ProcessGroup all) {
    continues(all, false);
  }

  @World(size = 4, backends = "gloo", processes = true, timeoutSeconds = 500)
  void aShardedOptimizerContinuesOnAnyNumberOfRanks(ProcessGroup all) {
    continues(all, true);
  }

  private static void continues(ProcessGroup all, boolean sharded) {
    List<float[]> undisturbed = train(all, sharded, 2, 4 * STEPS, "undisturbed");
    train(all, sharded, 2, STEPS, "disturbed");
    List<float[]> same = train(all, sharded, 2, 2 * STEPS, "disturbed");
    train(all, sharded, 3, 3 * STEPS, "disturbed");
    train(all, sharded, 4, 3 * STEPS + 1, "disturbed");
    List<float[]> last = train(all, sharded, 1, 4 * STEPS, "disturbed");
    List<float[]> half = train(all, sharded, 2, 2 * STEPS, "half");
    if (all.rank() == 0) {
      assertThat(same).hasSize(4);
      for (int i = 0; i < same.size(); i++) {
        assertThat(same.get(i)).isEqualTo(half.get(i));
        assertThat(last.get(i)).containsExactly(undisturbed.get(i), within(1e-6f));
      }
    }
  }
}
