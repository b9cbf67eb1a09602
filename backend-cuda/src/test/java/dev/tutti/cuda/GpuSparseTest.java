package dev.tutti.cuda;

import dev.tutti.cuda.provider.GlooCudaProvider;
import dev.tutti.gloo.GlooProvider;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Tests sums of sparse tensors on this machine's GPUs, which ranks share if there are too few. */
@ExtendWith(Gpu.class)
class GpuSparseTest {
  private static final int MOST = 1_000_000;

  private final Cuda cuda = Cuda.get();
  private final Map<String, SparseCases.Sum> sums = new ConcurrentHashMap<>();

  @Test
  void oneRankCoalescesItsTensor() throws Exception {
    new CudaRanks(cuda).run(1, (group, device) -> new SparseCases(group, device, sums).all(MOST));
  }

  @ParameterizedTest
  @ValueSource(ints = {2, 3, 4})
  void ranksSum(int size) throws Exception {
    new CudaRanks(cuda)
        .with("TUTTI_X_CUDA_LANES", "32")
        .with("TUTTI_X_CUDA_CHUNK_BYTES", "32K")
        .run(size, (group, device) -> new SparseCases(group, device, sums).all(MOST / 4));
  }

  @ParameterizedTest
  @ValueSource(strings = {"0", "1"})
  void ranksOfGlooSum(String direct) throws Exception {
    new CudaRanks(cuda)
        .on(new GlooProvider(List.of(new GlooCudaProvider(() -> cuda))))
        .with("TUTTI_X_GLOO_CUDA_DIRECT", direct)
        .with("TUTTI_X_CUDA_LANES", "32")
        .with("TUTTI_X_CUDA_CHUNK_BYTES", "32K")
        .run(2, (group, device) -> new SparseCases(group, device, sums).all(MOST / 10));
  }
}
