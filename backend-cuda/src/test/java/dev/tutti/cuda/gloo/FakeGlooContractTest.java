package dev.tutti.cuda.gloo;

import dev.tutti.Capabilities;
import dev.tutti.contracts.ContractSubject;
import dev.tutti.contracts.ContractWorld;
import dev.tutti.contracts.ProcessGroupContract;
import dev.tutti.contracts.Sampled;
import dev.tutti.cuda.FakeMachine;
import dev.tutti.spi.BackendProvider;
import org.junit.jupiter.api.AfterAll;

/** Runs the contract in Gloo groups with CUDA tensors, on fake devices. */
@Sampled
class FakeGlooContractTest extends ProcessGroupContract {
  private final FakeMachine machine = new FakeMachine(2);
  private final ContractSubject subject = new GlooCudaSubject(machine.cuda, 3, false);

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

  @AfterAll
  void nothingIsLeft() {
    machine.close();
  }
}
