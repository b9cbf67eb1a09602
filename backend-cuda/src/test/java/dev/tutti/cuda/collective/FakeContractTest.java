package dev.tutti.cuda.collective;

import dev.tutti.contracts.ContractSubject;
import dev.tutti.contracts.ProcessGroupContract;
import dev.tutti.cuda.CudaSubject;
import dev.tutti.cuda.FakeMachine;
import dev.tutti.spi.BackendProvider;
import java.util.Map;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.Order;

/** Runs the contract on fake devices. */
@Order(1)
class FakeContractTest extends ProcessGroupContract {
  private final FakeMachine machine = new FakeMachine(2);
  private final ContractSubject subject =
      new CudaSubject(
          machine.cuda,
          2,
          Map.of(
              "TUTTI_X_CUDA_LANES",
              "4",
              "TUTTI_X_CUDA_CHUNK_BYTES",
              "2K",
              "TUTTI_CLOSE_TIMEOUT",
              "10s"));

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
