package dev.tutti.cuda;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.tutti.DType;
import dev.tutti.Tensor;
import dev.tutti.gradients.ReducerOptions;
import dev.tutti.gradients.optimizer.AdamW;
import dev.tutti.gradients.optimizer.OptimizerOptions;
import dev.tutti.gradients.optimizer.Sgd;
import dev.tutti.gradients.optimizer.ShardedOptimizer;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Tests optimizers whose parameters are on fake devices. */
class DeviceOptimizerTest {
  private final FakeMachine machine = new FakeMachine(2);
  private final DeviceBuckets buckets = DeviceBuckets.of(machine);

  @AfterEach
  void close() {
    machine.close();
  }

  private CudaRanks ranks() {
    return new CudaRanks(machine.cuda).besideHost();
  }

  private OptimizerCases cases() {
    return new OptimizerCases(ranks(), buckets);
  }

  @Test
  void updatesAreThoseOfTheHost() throws Exception {
    cases().updates();
  }

  @Test
  void updatesFollowThePublishedFormulas() throws Exception {
    cases().formulas();
  }

  @Test
  void shorterParametersAreRoundedFromFloat32() throws Exception {
    cases().masterCopies();
  }

  @Test
  void clippingAndLossScalesAreThoseOfTheHost() throws Exception {
    cases().clippingAndLossScale();
  }

  @Test
  void flatParametersAreChangedAlike() throws Exception {
    machine.fake.races().findAcrossThreads();
    cases().flatParameters();
    assertThat(machine.fake.races().found()).isEmpty();
  }

  @Test
  void flatParametersAreNotCopied() throws Exception {
    ranks()
        .run(
            2,
            (group, device) -> {
              Tensor parameter = device.tensors().copyOf(Tensor.of(1f, 2f, 3f, 4f, 5f));
              ReducerOptions options = ReducerOptions.DEFAULT.withAllocator(buckets);
              OptimizerOptions flat = OptimizerOptions.DEFAULT.withFlatParameters();
              try (ShardedOptimizer optimizer =
                  new ShardedOptimizer(group, List.of(parameter), options, new Sgd(1), flat)) {
                buckets.zero(optimizer.reducer().gradient(0));
                group.store().barrier("ready", 2, Until.LONG);
                if (group.rank() == 0) {
                  machine.fake.clearCalls();
                }
                group.store().barrier("cleared", 2, Until.LONG);
                optimizer.reducer().ready(0);
                optimizer.step();
                group.store().barrier("stepped", 2, Until.LONG);
                assertThat(machine.fake.calls("cuMemcpyAsync")).isEmpty();
                group.store().barrier("checked", 2, Until.LONG);
                Tensor host = device.tensors().toHost(optimizer.parameters().getFirst());
                assertThat(host.toFloatArray()).containsExactly(1, 2, 3, 4, 5);
              }
            });
  }

  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void replaysAreStepsWithoutARace(boolean isFlat) throws Exception {
    machine.fake.races().findAcrossThreads();
    cases().replays(isFlat);
    assertThat(machine.fake.races().found()).isEmpty();
  }

  @Test
  void aStepWaitsForNothingOnTheHost() throws Exception {
    ranks()
        .run(
            2,
            (group, device) -> {
              Tensor parameter = device.tensors().copyOf(Tensor.of(1f, 2f, 3f, 4f, 5f));
              ReducerOptions options = ReducerOptions.DEFAULT.withAllocator(buckets);
              OptimizerOptions more = OptimizerOptions.DEFAULT.withClipping(1).withLossScale();
              try (ShardedOptimizer optimizer =
                  new ShardedOptimizer(group, List.of(parameter), options, new AdamW(0.5), more)) {
                buckets.zero(optimizer.reducer().gradient(0));
                CountDownLatch hold = machine.hold(device.currentStream());
                for (int step = 0; step < 3; step++) {
                  optimizer.reducer().ready(0);
                  optimizer.step();
                }
                assertThat(device.currentStream().isIdle()).isFalse();
                hold.countDown();
                assertThat(optimizer.steps()).isEqualTo(3);
                assertThat(optimizer.gradientNorm()).isZero();
                group.store().barrier("held", 2, Until.LONG);
              }
            });
  }

  @Test
  void typesWithoutKernelsAreRefusedBeforeTheRanksMeet() throws Exception {
    ranks()
        .run(
            2,
            (group, device) -> {
              Tensor parameter = device.tensors().allocate(DType.FLOAT64, 3);
              ReducerOptions options = ReducerOptions.DEFAULT.withAllocator(buckets);
              assertThatThrownBy(
                      () ->
                          new ShardedOptimizer(group, List.of(parameter), options, new AdamW(0.5)))
                  .isInstanceOf(IllegalArgumentException.class)
                  .hasMessageContaining("of a type that AdamW supports there")
                  .hasMessageContaining("float64");
              assertThat(group.failure()).isEmpty();
            });
  }
}
