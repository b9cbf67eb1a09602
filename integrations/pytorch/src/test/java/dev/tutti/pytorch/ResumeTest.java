package dev.tutti.pytorch;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import dev.tutti.ProcessGroup;
import dev.tutti.checkpoint.Checkpoints;
import dev.tutti.checkpoint.Contents;
import dev.tutti.fake.ThreadedWorld;
import dev.tutti.gradients.ReducerOptions;
import dev.tutti.gradients.optimizer.AdamW;
import dev.tutti.gradients.optimizer.Sgd;
import dev.tutti.gradients.optimizer.ShardedOptimizer;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Random;
import org.bytedeco.javacpp.Loader;
import org.bytedeco.pytorch.LinearImpl;
import org.bytedeco.pytorch.Scalar;
import org.bytedeco.pytorch.SequentialImpl;
import org.bytedeco.pytorch.Tensor;
import org.bytedeco.pytorch.TensorVector;
import org.bytedeco.pytorch.global.torch;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * Tests that a PyTorch module with a sharded optimizer continues from a checkpoint on as many ranks
 * as before or on others.
 */
class ResumeTest {
  private static final int STEPS = 3;

  @TempDir Path folder;

  @BeforeAll
  static void load() {
    Loader.load(torch.class);
  }

  private List<float[]> train(boolean adam, int ranks, int until, String name) {
    return ThreadedWorld.call(ranks, group -> train(group, adam, until, folder.resolve(name)))
        .getFirst();
  }

  /** Trains until a step, from the last checkpoint if there is one, and returns the parameters. */
  private static List<float[]> train(ProcessGroup group, boolean adam, int until, Path saves) {
    SequentialImpl module = new SequentialImpl();
    module.push_back(new LinearImpl(5, 7));
    module.push_back(new LinearImpl(7, 3));
    Map<String, dev.tutti.Tensor> views = Tensors.ofModule(module);
    List<String> names = List.copyOf(views.keySet());
    List<dev.tutti.Tensor> parameters = List.copyOf(views.values());
    // Known values where there is no checkpoint, and others than saved where there is one.
    Random random = new Random(1);
    parameters.forEach(each -> fill(each, random));
    try (ShardedOptimizer optimizer =
            new ShardedOptimizer(
                group,
                parameters,
                ReducerOptions.DEFAULT.withBucketBytes(64, 100),
                adam ? new AdamW(0.01) : new Sgd(0.1, 0.9, 0, 0, false));
        Checkpoints saved = Checkpoints.in(group, saves)) {
      Contents contents =
          Contents.of()
              .copies("model", names, parameters)
              .parts("optimizer", optimizer.state(names));
      for (long step = saved.loadLatest(contents).orElse(0) + 1; step <= until; step++) {
        backward(module, optimizer, new Random(step));
        optimizer.step();
      }
      saved.save(until, contents).await();
      return parameters.stream().map(dev.tutti.Tensor::toFloatArray).toList();
    }
  }

  private static void backward(SequentialImpl module, ShardedOptimizer optimizer, Random random) {
    Tensor input = torch.zeros(4, 5);
    fill(Tensors.of(input), random);
    module.zero_grad(true);
    module.forward(input).pow(new Scalar(2)).mean().backward();
    TensorVector parameters = module.parameters();
    for (int i = (int) parameters.size() - 1; i >= 0; i--) {
      optimizer.reducer().gradient(i).copyFrom(Tensors.of(parameters.get(i).grad()));
      optimizer.reducer().ready(i);
    }
  }

  private static void fill(dev.tutti.Tensor tensor, Random random) {
    dev.tutti.Tensor flat = tensor.view(tensor.numel());
    for (long i = 0; i < flat.numel(); i++) {
      flat.setFloat(i, (float) random.nextGaussian());
    }
  }

  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void theModuleContinuesOnAnyNumberOfRanks(boolean adam) {
    List<float[]> undisturbed = train(adam, 2, 5 * STEPS, "undisturbed");
    train(adam, 2, STEPS, "disturbed");
    List<float[]> same = train(adam, 2, 2 * STEPS, "disturbed");
    List<float[]> half = train(adam, 2, 2 * STEPS, "half");
    train(adam, 3, 3 * STEPS, "disturbed");
    train(adam, 4, 4 * STEPS, "disturbed");
    List<float[]> last = train(adam, 1, 5 * STEPS, "disturbed");
    assertThat(last).hasSize(4);
    for (int i = 0; i < last.size(); i++) {
      assertThat(same.get(i)).isEqualTo(half.get(i));
      assertThat(last.get(i)).containsExactly(undisturbed.get(i), within(1e-6f));
    }
  }
}
