package dev.tutti.cuda;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.DType;
import dev.tutti.ProcessGroup;
import dev.tutti.Tensor;
import dev.tutti.gradients.GradientReducer;
import java.util.List;
import org.junit.jupiter.api.Test;

/** Tests that gradients are reduced by copy engines while backward continues. */
class CopiedGradientsTest extends ReducersOnDevices {
  @Override
  CudaRanks ranks() {
    return super.ranks()
        .with("TUTTI_X_CUDA_COPIES_BYTES", "1")
        .with("TUTTI_X_CUDA_COPIES_PIECE_BYTES", "1K");
  }

  private static final long LARGE = 3 << 20;

  /** Takes steps with two large parameters, each in a bucket of its own, and checks the means. */
  private void train(ProcessGroup group, CudaDevice device, int steps) {
    List<Tensor> parameters =
        List.of(
            device.tensors().allocate(DType.FLOAT32, LARGE),
            device.tensors().allocate(DType.FLOAT32, LARGE));
    Tensor values = filled(device, (int) LARGE, group.rank());
    try (GradientReducer reducer = new GradientReducer(group, parameters, options())) {
      for (int step = 0; step < steps; step++) {
        for (int i : new int[] {1, 0}) {
          buckets.copy(reducer.gradient(i), values);
          reducer.ready(i);
        }
        reducer.await();
        for (int i = 0; i < 2; i++) {
          assertThat(device.tensors().toHost(reducer.gradient(i)).getFloat(LARGE - 1))
              .isEqualTo(0.5f);
        }
      }
    }
  }

  @Test
  void allBucketsButTheLastGoByCopies() throws Exception {
    super.ranks()
        .with("TUTTI_X_CUDA_COPIES_BYTES", "8M")
        .run(
            2,
            (group, device) -> {
              train(group, device, 3);
              // Two of those by chunks are broadcasts of the parameters.
              assertThat(group.diagnostics().usageByPath())
                  .containsEntry("cuda/copies", 3L)
                  .containsEntry("cuda/chunks", 3L + 2);
            });
  }

  @Test
  void theSecondReducerOfADeviceFreesItsMemoryOnceItIsDone() throws Exception {
    machine.fake.races().findAcrossThreads();
    ranks()
        .run(
            2,
            (group, device) -> {
              List<Tensor> parameters = List.of(filled(device, 5, 0), filled(device, 5, 0));
              try (ProcessGroup other = group.split(0, group.rank()).orElseThrow();
                  GradientReducer first = new GradientReducer(group, parameters, options());
                  GradientReducer second = new GradientReducer(other, parameters, options())) {
                for (int i : new int[] {1, 0}) {
                  second.ready(i);
                }
                second.await();
                first.zeroGradients();
                second.zeroGradients();
              }
            });
    assertThat(machine.fake.races().found()).isEmpty();
  }

  @Test
  void closedReducersGiveTheirMemoryBack() throws Exception {
    ranks()
        .run(
            2,
            (group, device) -> {
              train(group, device, 1);
              group.store().barrier("once", 2, Until.LONG);
              int before = machine.fake.living("physical memory");
              group.store().barrier("counted", 2, Until.LONG);
              train(group, device, 1);
              group.store().barrier("twice", 2, Until.LONG);
              assertThat(machine.fake.living("physical memory")).isEqualTo(before);
            });
  }

  /** {@code -Dtutti.gradientModels=N} trains another number of them. */
  @Test
  void randomModelsAreTrainedWithoutRaces() throws Exception {
    machine.fake.races().findAcrossThreads();
    DeviceModels models = new DeviceModels(ranks(), options -> options.withAllocator(buckets));
    for (int i = 0; i < Integer.getInteger("tutti.gradientModels", 6); i++) {
      models.train(710_000 + i, 3000);
      assertThat(machine.fake.races().found()).isEmpty();
      machine.fake.races().forget();
    }
    assertThat(machine.fake.calls("cuStreamWaitValue32")).isNotEmpty();
  }
}
