package dev.tutti.cuda;

import static org.junit.jupiter.api.Assumptions.assumeTrue;

import dev.tutti.OpType;
import dev.tutti.contracts.ContractSubject;
import dev.tutti.contracts.ContractTest;
import dev.tutti.contracts.ContractWorld;
import dev.tutti.contracts.ProcessGroupContract;
import dev.tutti.spi.BackendProvider;
import java.util.Map;
import org.junit.jupiter.api.extension.ExtendWith;

/** Runs the contract on up to 4 GPUs; if there are fewer, 4 ranks share them. */
@ExtendWith(Gpu.class)
class GpuContractTest extends ProcessGroupContract {
  private static final int RANKS = 4;

  @Override
  protected BackendProvider provider() {
    return subject().provider();
  }

  @Override
  public ContractSubject subject() {
    return new CudaSubject(
        Cuda.get(),
        RANKS,
        Map.of(
            "TUTTI_CLOSE_TIMEOUT", "10s",
            "TUTTI_X_CUDA_LANES", Cuda.get().deviceCount() < RANKS ? "8" : "128",
            "TORCH_SYMM_MEM_ALLOW_OVERLAPPING_DEVICES", "1"));
  }

  @Override
  @ContractTest(needs = OpType.ALL_REDUCE)
  public void dependentActionsMayRunCollectives(ContractWorld world) throws Exception {
    assumeTrue(
        Cuda.get().deviceCount() >= RANKS,
        "threads of actions have the default stream, which ranks that share a GPU must not");
    super.dependentActionsMayRunCollectives(world);
  }
}
