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
import org.bytedeco.pytorch.SGD;
import org.bytedeco.pytorch.SGDOptions;
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
 * Tests that a PyTorch module and its optimizer continue from a checkpoint on as many ranks as
 * before or on others.
 */
class ResumeTest {
  private static final int STEPS = 3;

  @TempDir Path folder;

  @BeforeAll
  static void load() {
    Loader.load(torch.class);
  }

  /** Trains until a step, from the last checkpoint if there is one, and returns the parameters. */
  private interface Training {
    List<float[]> run(ProcessGroup group, int until, Path saves);
  }

  private List<float[]> train(Training training, int ranks, int until, String name) {
    return ThreadedWorld.call(ranks, group -> training.run(group, until, folder.resolve(name)))
        .getFirst();
  }

  private static SequentialImpl module() {
    SequentialImpl module = new SequentialImpl();
    module.push_back(new LinearImpl(5, 7));
    module.push_back(new LinearImpl(7, 3));
    // Known values where there is no checkpoint, and others than saved where there is one.
    Random random = new Random(1);
    Tensors.ofModule(module).values().forEach(each -> fill(each, random));
    return module;
  }

  /** Trains with a sharded optimizer. */
  private static List<float[]> train(ProcessGroup group, boolean adam, int until, Path saves) {
    SequentialImpl module = module();
    Map<String, dev.tutti.Tensor> views = Tensors.ofModule(module);
    List<String> names = List.copyOf(views.keySet());
    List<dev.tutti.Tensor> parameters = List.copyOf(views.values());
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

  /** Trains with the adapter, and PyTorch's SGD or Adam by hand. */
  private static List<float[]> trainAlike(ProcessGroup group, boolean adam, int until, Path saves) {
    SequentialImpl module = module();
    Map<String, dev.tutti.Tensor> views = Tensors.ofModule(module);
    List<String> names = List.copyOf(views.keySet());
    List<dev.tutti.Tensor> parameters = List.copyOf(views.values());
    List<dev.tutti.Tensor> means = zeros(parameters);
    List<dev.tutti.Tensor> squares = zeros(parameters);
    Contents contents =
        Contents.of()
            .copies("model", names, parameters)
            .copies("exp_avg", names, means)
            .copies("exp_avg_sq", names, squares);
    SGD sgd = new SGD(module.parameters(), new SGDOptions(0.1));
    try (DataParallel parallel = new DataParallel(module, group);
        Checkpoints saved = Checkpoints.in(group, saves)) {
      for (long step = saved.loadLatest(contents).orElse(0) + 1; step <= until; step++) {
        backward(module, new Random(step));
        parallel.await();
        if (adam) {
          TensorVector all = module.parameters();
          for (int i = 0; i < parameters.size(); i++) {
            dev.tutti.Tensor gradient = Tensors.of(all.get(i).grad());
            adam(parameters.get(i), gradient, means.get(i), squares.get(i), (double) step);
          }
        } else {
          sgd.step();
        }
      }
      saved.save(until, contents).await();
      return parameters.stream().map(dev.tutti.Tensor::toFloatArray).toList();
    }
  }

  private static List<dev.tutti.Tensor> zeros(List<dev.tutti.Tensor> like) {
    return like.stream()
        .map(each -> dev.tutti.Tensor.allocate(each.dtype(), each.shape()))
        .toList();
  }

  private static void adam(
      dev.tutti.Tensor weight,
      dev.tutti.Tensor gradient,
      dev.tutti.Tensor mean,
      dev.tutti.Tensor square,
      double step) {
    for (long i = 0; i < weight.numel(); i++) {
      float each = gradient.getFloat(i);
      mean.setFloat(i, 0.9f * mean.getFloat(i) + 0.1f * each);
      square.setFloat(i, 0.999f * square.getFloat(i) + 0.001f * each * each);
      double first = mean.getFloat(i) / (1 - Math.pow(0.9, step));
      double second = square.getFloat(i) / (1 - Math.pow(0.999, step));
      double change = 0.01 * first / (Math.sqrt(second) + 1e-8);
      weight.setFloat(i, (float) (weight.getFloat(i) - change));
    }
  }

  private static void backward(SequentialImpl module, Random random) {
    Tensor input = torch.zeros(4, 5);
    fill(Tensors.of(input), random);
    module.zero_grad(true);
    module.forward(input).pow(new Scalar(2)).mean().backward();
  }

  private static void backward(SequentialImpl module, ShardedOptimizer optimizer, Random random) {
    backward(module, random);
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
    continues((group, until, saves) -> train(group, adam, until, saves));
  }

  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void anOptimizerThatAllRanksHaveContinuesOnAnyNumberOfRanks(boolean adam) {
    continues((group, until, saves) -> trainAlike(group, adam, until, saves));
  }

  private void continues(Training training) {
    List<float[]> undisturbed = train(training, 2, 5 * STEPS, "undisturbed");
    train(training, 2, STEPS, "disturbed");
    List<float[]> same = train(training, 2, 2 * STEPS, "disturbed");
    List<float[]> half = train(training, 2, 2 * STEPS, "half");
    train(training, 3, 3 * STEPS, "disturbed");
    train(training, 4, 4 * STEPS, "disturbed");
    List<float[]> last = train(training, 1, 5 * STEPS, "disturbed");
    assertThat(last).hasSize(4);
    for (int i = 0; i < last.size(); i++) {
      assertThat(same.get(i)).isEqualTo(half.get(i));
      assertThat(last.get(i)).containsExactly(undisturbed.get(i), within(1e-6f));
    }
  }
}
