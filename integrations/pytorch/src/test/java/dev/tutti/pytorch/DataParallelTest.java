package dev.tutti.pytorch;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import dev.tutti.ProcessGroup;
import dev.tutti.Registration;
import dev.tutti.gradients.GradientException;
import dev.tutti.gradients.GradientHook;
import dev.tutti.gradients.ReducerOptions;
import dev.tutti.testing.World;
import java.lang.ref.WeakReference;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import org.bytedeco.javacpp.Loader;
import org.bytedeco.pytorch.BatchNorm1dImpl;
import org.bytedeco.pytorch.BatchNormOptions;
import org.bytedeco.pytorch.LinearImpl;
import org.bytedeco.pytorch.LinearOptions;
import org.bytedeco.pytorch.Module;
import org.bytedeco.pytorch.Scalar;
import org.bytedeco.pytorch.Tensor;
import org.bytedeco.pytorch.global.torch;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;

@World(backends = "gloo", timeoutSeconds = 240)
class DataParallelTest {
  private static final int ROWS = 24;

  /** Two layers, and a third that a forward pass may omit. */
  private static final class Network extends Module {
    final LinearImpl first;
    final LinearImpl second;
    final LinearImpl spare;

    Network(int inputs) {
      first = register_module("first", new LinearImpl(inputs, 16));
      second = register_module("second", new LinearImpl(16, 3));
      spare = register_module("spare", new LinearImpl(3, 3));
    }

    Tensor loss(Tensor input, boolean withSpare) {
      Tensor output = second.forward(torch.relu(first.forward(input)));
      if (withSpare) {
        output = spare.forward(output);
      }
      return output.square().mean();
    }

    List<Tensor> all() {
      return List.of(parameters().get());
    }
  }

  @BeforeAll
  static void load() {
    Loader.load(torch.class);
  }

  private static void fill(Module module, float seed) {
    for (Tensor parameter : module.parameters().get()) {
      dev.tutti.Tensor view = Tensors.of(parameter);
      for (long i = 0; i < view.numel(); i++) {
        view.setFloat(i, (float) Math.sin(seed + i * 0.7) * 0.5f);
      }
    }
  }

  private static Network network(ProcessGroup group) {
    Network network = new Network(6);
    fill(network, group.rank());
    return network;
  }

  private static Tensor input(int step) {
    Tensor input = torch.zeros(ROWS, 6);
    dev.tutti.Tensor view = Tensors.of(input);
    for (long i = 0; i < view.numel(); i++) {
      view.setFloat(i, (float) Math.cos(step + i * 0.3));
    }
    return input;
  }

  /** Returns this rank's part of a batch. */
  private static Tensor part(ProcessGroup group, int step) {
    long rows = ROWS / group.size();
    return input(step).narrow(0, group.rank() * rows, rows);
  }

  private static void requireGradients(List<Tensor> parameters, List<Tensor> expected) {
    for (int i = 0; i < parameters.size(); i++) {
      float[] actual = Tensors.of(parameters.get(i).grad()).toFloatArray();
      float[] reference = Tensors.of(expected.get(i).grad()).toFloatArray();
      for (int k = 0; k < actual.length; k++) {
        assertThat(actual[k])
            .as("gradient %d of parameter %d", k, i)
            .isCloseTo(reference[k], within(1e-6f + 1e-5f * Math.abs(reference[k])));
      }
    }
  }

  private static void descend(Network network) {
    for (Tensor parameter : network.all()) {
      try (Tensor data = parameter.detach();
          Tensor change = parameter.grad().mul(new Scalar(0.1f))) {
        data.sub_(change);
      }
    }
  }

  @World(sizes = {1, 2, 3, 4})
  void gradientsAreThoseOfTheWholeBatch(ProcessGroup group) {
    Network alone = new Network(6);
    fill(alone, 0);
    Network network = network(group);
    ReducerOptions options = ReducerOptions.DEFAULT.withBucketBytes(64, 256);
    try (DataParallel parallel = new DataParallel(network, group, options)) {
      for (int step = 0; step < 5; step++) {
        alone.zero_grad(true);
        alone.loss(input(step), true).backward();
        network.zero_grad(step % 2 == 0);
        network.loss(part(group, step), true).backward();
        parallel.await();
        requireGradients(network.all(), alone.all());
        for (int i = 0; i < network.all().size(); i++) {
          assertThat(network.all().get(i).grad().data_ptr().address())
              .as("gradient %d is in a bucket", i)
              .isEqualTo(parallel.reducer().gradient(i).segment().address());
        }
        descend(alone);
        descend(network);
      }
    }
  }

  @World
  void bucketsAreReducedBeforeBackwardIsAwaited(ProcessGroup group) throws Exception {
    Semaphore reduced = new Semaphore(0);
    GradientHook counting =
        (bucket, hookGroup) -> {
          GradientHook.ALL_REDUCE.reduce(bucket, hookGroup);
          reduced.release();
        };
    ReducerOptions options = ReducerOptions.DEFAULT.withBucketBytes(1, 1).withHook(counting);
    Network network = network(group);
    try (DataParallel parallel = new DataParallel(network, group, options)) {
      network.loss(part(group, 0), true).backward();
      assertThat(reduced.tryAcquire(5, 120, TimeUnit.SECONDS)).isTrue();
      parallel.await();
      assertThat(reduced.availablePermits()).isEqualTo(1);
    }
  }

  @World
  void parametersAndBuffersAreThoseOfRankZero(ProcessGroup group) {
    BatchNorm1dImpl norm = new BatchNorm1dImpl(new BatchNormOptions(4));
    fill(norm, group.rank());
    norm.running_mean().fill_(new Scalar(group.rank() + 3f));
    norm.weight().requires_grad_(false);
    try (DataParallel _ = new DataParallel(norm, group)) {
      assertThat(Tensors.of(norm.running_mean()).toFloatArray()).containsOnly(3);
      assertThat(Tensors.of(norm.weight()).getFloat(1)).isEqualTo((float) Math.sin(0.7) * 0.5f);
      assertThat(Tensors.of(norm.bias()).getFloat(1)).isEqualTo((float) Math.sin(0.7) * 0.5f);
    }
  }

  @World
  void backwardsWithoutSynchronizationAddUp(ProcessGroup group) {
    Network alone = new Network(6);
    fill(alone, 0);
    Network network = network(group);
    try (DataParallel parallel = new DataParallel(network, group)) {
      for (int step = 0; step < 3; step++) {
        alone.zero_grad(true);
        network.zero_grad(true);
        try (Registration _ = parallel.noSync()) {
          for (int i = 0; i < 2; i++) {
            network.loss(part(group, step + i), true).backward();
            parallel.await();
            alone.loss(input(step + i), true).backward();
          }
        }
        network.loss(part(group, step + 7), true).backward();
        parallel.await();
        alone.loss(input(step + 7), true).backward();
        requireGradients(network.all(), alone.all());
      }
    }
  }

  @World
  void aMissingGradientIsNamed(ProcessGroup group) {
    Network network = network(group);
    try (DataParallel parallel = new DataParallel(network, group)) {
      network.loss(part(group, 0), false).backward();
      assertThatThrownBy(parallel::await)
          .isInstanceOf(GradientException.class)
          .hasMessageContaining("spare.");
    }
  }

  @World
  void aParameterThatSomeRanksUseGetsTheMeanOnAll(ProcessGroup group) {
    Network network = network(group);
    ReducerOptions options = ReducerOptions.DEFAULT.withUnusedParameters();
    try (DataParallel parallel = new DataParallel(network, group, options)) {
      network.loss(part(group, 0), false).backward();
      parallel.await();
      assertThat(network.spare.weight().grad().defined()).isFalse();
      assertThat(network.first.weight().grad().defined()).isTrue();

      network.zero_grad(true);
      network.loss(part(group, 1), group.rank() == 1).backward();
      float[] own =
          group.rank() == 1
              ? Tensors.of(network.spare.weight().grad()).toFloatArray()
              : new float[9];
      parallel.await();
      dev.tutti.Tensor sum = dev.tutti.Tensor.of(own);
      group.allReduce(sum);
      float[] mean = Tensors.of(network.spare.weight().grad()).toFloatArray();
      for (int i = 0; i < mean.length; i++) {
        assertThat(mean[i]).isCloseTo(sum.getFloat(i) / group.size(), within(1e-6f));
      }
      assertThat(mean[0]).isNotZero();
    }
  }

  /** Layers that are registered in another order than backward reaches them. */
  private static final class Shuffled extends Module {
    final LinearImpl second = register_module("second", new LinearImpl(5, 3));
    final LinearImpl first = register_module("first", new LinearImpl(6, 5));

    void backward(Tensor input) {
      second.forward(first.forward(input)).square().mean().backward();
    }
  }

  @World
  void aRankMayJoinBeforeItsFirstBackward(ProcessGroup group) {
    ReducerOptions options =
        ReducerOptions.DEFAULT
            .withUnevenInputs(ReducerOptions.Divisor.GROUP_SIZE)
            .withBucketBytes(1, 1);
    Shuffled network = new Shuffled();
    fill(network, 0);
    Shuffled alone = new Shuffled();
    fill(alone, 0);
    try (DataParallel parallel = new DataParallel(network, group, options)) {
      if (group.rank() == 0) {
        network.backward(part(group, 0));
        parallel.await();
      }
      parallel.reducer().join();

      network.zero_grad(true);
      network.backward(part(group, 1));
      parallel.await();
      alone.backward(input(1));
      requireGradients(List.of(network.parameters().get()), List.of(alone.parameters().get()));
    }
  }

  @World
  void aGradientThatIsGoneFailsTheStepOnAllRanks(ProcessGroup group) {
    LinearOptions withoutBias = new LinearOptions(6, 3);
    withoutBias.bias().put(false);
    LinearImpl layer = new LinearImpl(withoutBias);
    try (DataParallel parallel = new DataParallel(layer, group)) {
      layer.forward(part(group, 0)).square().mean().backward();
      if (group.rank() == 1) {
        layer.zero_grad(true);
      }
      assertThatThrownBy(parallel::await)
          .isInstanceOf(GradientException.class)
          .hasMessageContaining("the gradient of parameter 0 'weight' is missing");
    }
  }

  @World
  void twoBackwardsInAStepFail(ProcessGroup group) {
    Network network = network(group);
    try (DataParallel parallel = new DataParallel(network, group)) {
      network.loss(part(group, 0), true).backward();
      network.loss(part(group, 1), true).backward();
      assertThatThrownBy(parallel::await)
          .isInstanceOf(GradientException.class)
          .hasMessageContaining("was marked twice");
    }
  }

  @World
  void otherShapesAreNamedOnAllRanks(ProcessGroup group) {
    Network network = new Network(group.rank() == 1 ? 7 : 6);
    assertThatThrownBy(() -> new DataParallel(network, group))
        .isInstanceOf(GradientException.class)
        .hasMessageContaining("first.weight")
        .hasMessageContaining("rank 1");
    group.barrier();
  }

  @World
  void aModuleGoesOnAloneWhenItIsClosed(ProcessGroup group) {
    Network alone = new Network(6);
    fill(alone, 0);
    Network network = network(group);
    List<Long> buckets = new ArrayList<>();
    try (DataParallel parallel = new DataParallel(network, group)) {
      network.loss(part(group, 0), true).backward();
      parallel.await();
      for (int i = 0; i < network.all().size(); i++) {
        buckets.add(parallel.reducer().gradient(i).segment().address());
      }
      alone.loss(input(0), true).backward();
    }
    assertThat(buckets).allSatisfy(address -> assertThat(LentMemory.count(address)).isZero());
    requireGradients(network.all(), alone.all());
    network.loss(input(1), true).backward();
    alone.loss(input(1), true).backward();
    requireGradients(network.all(), alone.all());
  }

  private static WeakReference<Semaphore> closedParameter() {
    Semaphore calls = new Semaphore(0);
    Tensor parameter = torch.ones(3).set_requires_grad(true);
    ModuleParameter closed = new ModuleParameter("weight", parameter, calls::release);
    parameter.sum().backward();
    assertThat(calls.availablePermits()).isEqualTo(1);
    closed.close();
    parameter.sum().backward();
    assertThat(calls.availablePermits()).isEqualTo(1);
    return new WeakReference<>(calls);
  }

  @Test
  void theHookOfAClosedParameterIsNotHeld() {
    WeakReference<Semaphore> calls = closedParameter();
    System.gc();
    assertThat(calls.get()).isNull();
  }
}
