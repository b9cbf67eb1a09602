package dev.tutti.cuda.gloo;

import dev.tutti.Capabilities;
import dev.tutti.cuda.Cuda;
import dev.tutti.cuda.CudaSubject;
import dev.tutti.cuda.provider.GlooCudaProvider;
import dev.tutti.gloo.GlooProvider;
import dev.tutti.spi.BackendProvider;
import java.util.List;
import java.util.Map;

/** A Gloo group with CUDA tensors as a subject of the contract suites. */
public final class GlooCudaSubject extends CudaSubject {
  private final BackendProvider provider;
  private final boolean direct;

  public GlooCudaSubject(Cuda cuda, int mostRanks, boolean direct) {
    super(
        cuda,
        mostRanks,
        Map.of(
            "TUTTI_CLOSE_TIMEOUT",
            "10s",
            "TUTTI_X_CUDA_LANES",
            "8",
            "TUTTI_X_CUDA_CHUNK_BYTES",
            "2K",
            "TUTTI_X_GLOO_CUDA_DIRECT",
            direct ? "1" : "0",
            "TUTTI_X_GLOO_CUDA_CHUNK_BYTES",
            "1K"));
    this.direct = direct;
    provider = new GlooProvider(List.of(new GlooCudaProvider(() -> cuda)));
  }

  /** Kernels do not compare the calls of different ranks. */
  @Override
  public boolean detectsMismatches() {
    return !direct;
  }

  @Override
  public BackendProvider provider() {
    return provider;
  }

  @Override
  public Capabilities capabilities() {
    return provider.capabilities("cuda");
  }
}
