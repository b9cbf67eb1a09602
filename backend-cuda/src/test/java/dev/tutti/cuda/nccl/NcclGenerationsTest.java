package dev.tutti.cuda.nccl;

import dev.tutti.cuda.CudaRanks;
import dev.tutti.cuda.GenerationCases;
import dev.tutti.cuda.driver.FakeNccl;
import dev.tutti.cuda.provider.NcclBackendProvider;
import java.util.Optional;
import org.junit.jupiter.api.parallel.Isolated;

/** Tests that groups on a fake NCCL go on with other members. */
@Isolated("counts the threads of the process")
class NcclGenerationsTest extends GenerationCases {
  private final FakeNccl nccl = new FakeNccl(machine.fake);

  @Override
  protected CudaRanks ranks() {
    return new CudaRanks(machine.cuda)
        .on(new NcclBackendProvider(() -> machine.cuda, Optional::empty, settings -> nccl));
  }

  @Override
  protected int communicators() {
    return nccl.communicators();
  }
}
