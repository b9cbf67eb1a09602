package dev.tutti.cuda;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.tutti.ProcessGroup;
import dev.tutti.Tensor;
import dev.tutti.cuda.driver.FakeNccl;
import dev.tutti.cuda.provider.NcclBackendProvider;
import dev.tutti.gradients.GradientException;
import dev.tutti.gradients.GradientHook;
import dev.tutti.gradients.GradientReducer;
import dev.tutti.gradients.ReducerOptions;
import java.time.Duration;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Tests that gradients on devices are reduced in a stream of the reducer, and in which order. */
class OverlapTest extends ReducersOnDevices {
  private static float[] read(CudaDevice device, Tensor tensor) {
    return device.tensors().toHost(tensor).toFloatArray();
  }

  private void write(Tensor gradient, Tensor values) {
    buckets.copy(gradient, values);
  }

  @Test
  void aBucketIsReducedWhileBackwardContinues() throws Exception {
    ranks()
        .run(
            2,
            (group, device) -> {
              AtomicReference<CudaEvent> reduced = new AtomicReference<>();
              GradientHook hook =
                  (bucket, of) -> {
                    GradientHook.ALL_REDUCE.reduce(bucket, of);
                    reduced.set(device.currentStream().record());
                  };
              List<Tensor> parameters = List.of(filled(device, 4, 0), filled(device, 5, 0));
              Tensor first = filled(device, 4, group.rank());
              Tensor second = filled(device, 5, 10 + group.rank());
              try (GradientReducer reducer =
                  new GradientReducer(group, parameters, options().withHook(hook))) {
                for (int step = 0; step < 3; step++) {
                  write(reducer.gradient(1), second);
                  reducer.ready(1);
                  CountDownLatch backward = machine.hold(device.currentStream());
                  CudaEvent event = reduced.get();
                  Until.holds("the mean of bucket 0", event::isReached);
                  write(reducer.gradient(0), first);
                  reducer.ready(0);
                  reducer.await();
                  assertThat(device.currentStream().isIdle()).isFalse();
                  backward.countDown();
                  assertThat(read(device, reducer.gradient(0))).containsOnly(0.5f);
                  assertThat(read(device, reducer.gradient(1))).containsOnly(10.5f);
                }
              }
            });
  }

  @Test
  void aBucketWaitsForAllStreamsInWhichItsGradientsWereWritten() throws Exception {
    ranks()
        .run(
            2,
            (group, device) -> {
              ReducerOptions options = options().withBucketBytes(1000, 1000);
              List<Tensor> parameters = List.of(filled(device, 4, 0), filled(device, 5, 0));
              Tensor first = filled(device, 4, 2 * group.rank());
              Tensor second = filled(device, 5, 10 + 2 * group.rank());
              CudaStream other = device.poolStream();
              try (GradientReducer reducer = new GradientReducer(group, parameters, options)) {
                for (int step = 0; step < 3; step++) {
                  other.waitFor(device.currentStream());
                  CountDownLatch held = machine.hold(other);
                  try (CudaStream.Scope _ = other.use()) {
                    write(reducer.gradient(1), second);
                    reducer.ready(1);
                  }
                  write(reducer.gradient(0), first);
                  reducer.ready(0);
                  reducer.await();
                  held.countDown();
                  assertThat(read(device, reducer.gradient(0))).containsOnly(1);
                  assertThat(read(device, reducer.gradient(1))).containsOnly(11);
                  reducer.zeroGradients();
                }
              }
            });
  }

  private List<Boolean> usesCurrentStream(CudaRanks ranks, ReducerOptions options)
      throws Exception {
    boolean[] found = new boolean[2];
    ranks.run(
        2,
        (group, device) -> {
          CudaStream stream = device.currentStream();
          GradientHook hook =
              (bucket, of) -> found[of.rank()] = device.currentStream().equals(stream);
          try (GradientReducer reducer =
              new GradientReducer(group, List.of(filled(device, 4, 0)), options.withHook(hook))) {
            reducer.ready(0);
            reducer.await();
          }
        });
    return List.of(found[0], found[1]);
  }

  @Test
  void aReducerHasAStreamUnlessItIsToldNotToOrRanksShareADevice() throws Exception {
    assertThat(usesCurrentStream(ranks(), options())).containsOnly(false);
    assertThat(usesCurrentStream(ranks(), options().withoutOverlap())).containsOnly(true);
    assertThat(usesCurrentStream(ranks().onOneDevice(), options())).containsOnly(true);
  }

  @Test
  void closedReducersGiveTheirStreamsBack() throws Exception {
    for (int i = 0; i < 3; i++) {
      assertThat(usesCurrentStream(ranks(), options())).containsOnly(false);
    }
    int streams = machine.fake.living("stream");
    for (int i = 0; i < 60; i++) {
      assertThat(usesCurrentStream(ranks(), options())).containsOnly(false);
    }
    assertThat(machine.fake.living("stream")).isEqualTo(streams);
  }

  @Test
  void oneReducerAtATimeHasAStreamOnADevice() throws Exception {
    ranks()
        .run(
            2,
            (group, device) -> {
              CudaStream stream = device.currentStream();
              try (ProcessGroup other = group.split(0, group.rank()).orElseThrow()) {
                AtomicReference<CudaStream> of = new AtomicReference<>();
                GradientHook hook = (bucket, in) -> of.set(device.currentStream());
                List<Tensor> parameters = List.of(filled(device, 4, 0));
                ReducerOptions noting = options().withHook(hook);
                try (GradientReducer first = new GradientReducer(group, parameters, noting);
                    GradientReducer second = new GradientReducer(other, parameters, noting)) {
                  step(second);
                  assertThat(of.get()).isEqualTo(stream);
                  step(first);
                  assertThat(of.get()).isNotEqualTo(stream);
                }
                try (GradientReducer third = new GradientReducer(other, parameters, noting)) {
                  step(third);
                  assertThat(of.get()).isNotEqualTo(stream);
                }
              }
            });
  }

  @Test
  void aFailureOnTheDeviceIsThrownByTheNextCall() throws Exception {
    ranks()
        .run(
            2,
            (group, device) -> {
              try (GradientReducer reducer =
                  new GradientReducer(group, List.of(filled(device, 4, 0)), options())) {
                step(reducer);
                group.barrier();
                if (group.rank() == 0) {
                  group.setTimeout(Duration.ofMillis(300));
                  step(reducer);
                  requireFailed(group, reducer);
                } else {
                  Until.holds("the failure", () -> group.failure().isPresent());
                }
              }
            });
  }

  /** {@code -Dtutti.gradientModels=N} trains another number of them. */
  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void randomModelsAreTrainedWithoutRaces(boolean overNccl) throws Exception {
    machine.fake.races().findAcrossThreads();
    FakeNccl nccl = new FakeNccl(machine.fake);
    CudaRanks ranks =
        overNccl
            ? ranks().on(new NcclBackendProvider(() -> machine.cuda, Optional::empty, _ -> nccl))
            : ranks();
    DeviceModels models = new DeviceModels(ranks, options -> options.withAllocator(buckets));
    for (int i = 0; i < Integer.getInteger("tutti.gradientModels", 6); i++) {
      models.train(700_000 + i, 3000);
      assertThat(machine.fake.races().found()).isEmpty();
      // Which threads freed the memory that the next groups get is unknown to the finder.
      machine.fake.races().forget();
    }
  }

  private static void requireFailed(ProcessGroup group, GradientReducer reducer) {
    Until.holds("the failure", () -> group.failure().isPresent());
    assertThatThrownBy(() -> reducer.ready(0))
        .isInstanceOf(GradientException.class)
        .hasMessageContaining("rank 0: the group failed in or before step 3")
        .hasCause(group.failure().orElseThrow());
    assertThatThrownBy(reducer::zeroGradients).isInstanceOf(GradientException.class);
  }

  private static void step(GradientReducer reducer) {
    reducer.ready(0);
    reducer.await();
  }
}
