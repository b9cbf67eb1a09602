package dev.tutti.cuda.nccl;

import dev.tutti.cuda.Cuda;
import dev.tutti.cuda.CudaSubject;
import dev.tutti.cuda.provider.NcclBackendProvider;
import dev.tutti.spi.BackendProvider;
import java.util.Map;
import java.util.Optional;

/**
 * The backend on NCCL as a subject of the contract suites: ranks are threads, each with its own
 * device.
 */
public final class NcclSubject extends CudaSubject {
  private final Cuda cuda;
  private final NcclCalls nccl;

  public NcclSubject(Cuda cuda, NcclCalls nccl, int mostRanks) {
    super(cuda, mostRanks, Map.of("TUTTI_CLOSE_TIMEOUT", "10s"));
    this.cuda = cuda;
    this.nccl = nccl;
  }

  /** NCCL multiplies each rank's input by the inverse of the number of ranks. */
  @Override
  public boolean dividesTheSum() {
    return false;
  }

  /** NCCL ignores a NaN where another rank has a number. */
  @Override
  public boolean nanWins() {
    return false;
  }

  @Override
  public BackendProvider provider() {
    return new NcclBackendProvider(() -> cuda, Optional::empty, settings -> nccl);
  }
}
