package dev.tutti.cuda;

import dev.tutti.contracts.ContractSubject;
import dev.tutti.contracts.fuzz.FuzzContract;
import dev.tutti.cuda.driver.FakeNccl;
import dev.tutti.cuda.gloo.GlooCudaSubject;
import dev.tutti.cuda.nccl.NcclSubject;
import java.util.Map;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.Nested;

/** Runs random programs on fake devices. */
class FakeProgramsTest {
  @Nested
  class Kernels implements FuzzContract {
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
    public ContractSubject subject() {
      return subject;
    }

    @AfterAll
    void nothingIsLeft() {
      machine.close();
    }
  }

  @Nested
  class Gloo implements FuzzContract {
    private final FakeMachine machine = new FakeMachine(2);
    private final ContractSubject subject = new GlooCudaSubject(machine.cuda, 3, false);

    @Override
    public ContractSubject subject() {
      return subject;
    }

    @AfterAll
    void nothingIsLeft() {
      machine.close();
    }
  }

  /** Reduces on the devices. */
  @Nested
  class GlooDirect implements FuzzContract {
    private final FakeMachine machine = new FakeMachine(2);
    private final ContractSubject subject = new GlooCudaSubject(machine.cuda, 2, true);

    @Override
    public ContractSubject subject() {
      return subject;
    }

    @AfterAll
    void nothingIsLeft() {
      machine.close();
    }
  }

  @Nested
  class Nccl implements FuzzContract {
    private final FakeMachine machine = new FakeMachine(3);
    private final ContractSubject subject =
        new NcclSubject(machine.cuda, new FakeNccl(machine.fake), 3);

    @Override
    public ContractSubject subject() {
      return subject;
    }

    @AfterAll
    void nothingIsLeft() {
      machine.close();
    }
  }
}
