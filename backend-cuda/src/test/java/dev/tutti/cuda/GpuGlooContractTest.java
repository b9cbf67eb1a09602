package dev.tutti.cuda;

import dev.tutti.Capabilities;
import dev.tutti.contracts.ContractSubject;
import dev.tutti.contracts.ContractWorld;
import dev.tutti.contracts.ProcessGroupContract;
import dev.tutti.cuda.gloo.GlooCudaSubject;
import dev.tutti.spi.BackendProvider;
import org.junit.jupiter.api.extension.ExtendWith;

/** Runs the contract in Gloo groups with CUDA tensors, on the GPUs of this machine. */
@ExtendWith(Gpu.class)
class GpuGlooContractTest extends ProcessGroupContract {
  private final ContractSubject subject = new GlooCudaSubject(Cuda.get(), 4, false);

  @Override
  protected BackendProvider provider() {
    return subject.provider();
  }

  @Override
  protected Capabilities capabilities() {
    return subject.capabilities();
  }

  /** Tests nothing here: the group has symmetric memory, on the host. */
  @Override
  public void undeclaredSymmetricMemoryIsRefused(ContractWorld world) {}

  @Override
  public ContractSubject subject() {
    return subject;
  }
}
