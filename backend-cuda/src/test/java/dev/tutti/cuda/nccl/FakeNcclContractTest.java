package dev.tutti.cuda.nccl;

import dev.tutti.contracts.ContractSubject;
import dev.tutti.contracts.ProcessGroupContract;
import dev.tutti.contracts.Sampled;
import dev.tutti.cuda.FakeMachine;
import dev.tutti.cuda.driver.FakeNccl;
import dev.tutti.spi.BackendProvider;
import org.junit.jupiter.api.AfterAll;

/** Runs the contract on a fake NCCL. */
@Sampled
class FakeNcclContractTest extends ProcessGroupContract {
  private final FakeMachine machine = new FakeMachine(3);
  private final ContractSubject subject =
      new NcclSubject(machine.cuda, new FakeNccl(machine.fake), 3);

  @Override
  protected BackendProvider provider() {
    return subject.provider();
  }

  @Override
  public ContractSubject subject() {
    return subject;
  }

  @AfterAll
  void nothingIsLeft() {
    machine.close();
  }
}
