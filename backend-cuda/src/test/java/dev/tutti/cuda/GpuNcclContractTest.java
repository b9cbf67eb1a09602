package dev.tutti.cuda;

import dev.tutti.Settings;
import dev.tutti.contracts.ContractSubject;
import dev.tutti.contracts.ProcessGroupContract;
import dev.tutti.cuda.nccl.NcclLibrary;
import dev.tutti.cuda.nccl.NcclSubject;
import dev.tutti.spi.BackendProvider;
import org.junit.jupiter.api.extension.ExtendWith;

/** Runs the contract on NCCL, on all GPUs of the machine. */
@ExtendWith(GpuNccl.class)
class GpuNcclContractTest extends ProcessGroupContract {
  @Override
  protected BackendProvider provider() {
    return subject().provider();
  }

  @Override
  public ContractSubject subject() {
    Cuda cuda = Cuda.get();
    return new NcclSubject(
        cuda, NcclLibrary.get(Settings.fromEnvironment()).calls(), Math.min(4, cuda.deviceCount()));
  }
}
