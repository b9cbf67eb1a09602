package dev.tutti.cuda;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;

/** Tests that gradients are reduced by copy engines while backward continues. */
class CopiedGradientsTest extends ReducersOnDevices {
  @Override
  CudaRanks ranks() {
    return super.ranks()
        .with("TUTTI_X_CUDA_COPIES_BYTES", "1")
        .with("TUTTI_X_CUDA_COPIES_PIECE_BYTES", "1K");
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
