package dev.tutti.cuda;

import dev.tutti.cuda.provider.GlooCudaProvider;
import dev.tutti.gloo.GlooProvider;
import java.time.Duration;
import java.util.List;
import java.util.function.UnaryOperator;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * Compares the gradients of random models on this machine's GPUs, which ranks share if there are
 * too few, with a float64 reference. {@code -Dtutti.gradientSeed=N} starts at another seed.
 */
@ExtendWith(Gpu.class)
class GpuModelsTest {
  private static final long SEED = Long.getLong("tutti.gradientSeed", 1);

  private final Cuda cuda = Cuda.get();

  @ParameterizedTest
  @ValueSource(booleans = {true, false})
  void hundredsOfModels(boolean direct) throws Exception {
    DeviceModels models =
        new DeviceModels(
            new CudaRanks(cuda)
                .on(new GlooProvider(List.of(new GlooCudaProvider(() -> cuda))))
                .with("TUTTI_X_GLOO_CUDA_DIRECT", direct ? "1" : "0")
                .within(Duration.ofSeconds(30)),
            UnaryOperator.identity());
    for (int i = 0; i < 200; i++) {
      models.train(SEED + 500_000 + i, 3000);
    }
    for (int i = 0; i < 4; i++) {
      models.train(SEED + 600_000 + i, 1_000_000);
    }
  }
}
