package dev.tutti.cuda;

import dev.tutti.spi.BackendProvider;
import dev.tutti.testing.ContractSubject;
import dev.tutti.testing.ProcessGroupContract;
import java.util.Map;
import org.junit.jupiter.api.extension.ExtendWith;

/** Runs the contract on as many GPUs as there are. */
@ExtendWith(Gpu.class)
class GpuContractTest extends ProcessGroupContract {
  @Override
  protected BackendProvider provider() {
    return subject().provider();
  }

  @Override
  public ContractSubject subject() {
    Cuda cuda = Cuda.get();
    return new CudaSubject(
        cuda, Math.min(4, cuda.deviceCount()), Map.of("TUTTI_CLOSE_TIMEOUT", "1s"));
  }
}
