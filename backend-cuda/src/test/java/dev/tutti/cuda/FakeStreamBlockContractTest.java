package dev.tutti.cuda;

import dev.tutti.contracts.StreamBlockContract;
import dev.tutti.contracts.StreamBlockFixture;
import dev.tutti.cuda.block.CudaStreamBlockProvider;
import dev.tutti.spi.DeviceEvent;
import dev.tutti.spi.StreamBlockProvider;

class FakeStreamBlockContractTest extends StreamBlockContract {
  @Override
  protected StreamBlockFixture fixture() {
    FakeMachine machine = new FakeMachine(1);
    return new Fixture(machine.cuda, machine);
  }

  /** Gives the suite streams from the pool; the scopes end with the threads. */
  static final class Fixture implements StreamBlockFixture {
    private final Cuda cuda;
    private final AutoCloseable machine;

    Fixture(Cuda cuda, AutoCloseable machine) {
      this.cuda = cuda;
      this.machine = machine;
    }

    @Override
    public StreamBlockProvider provider() {
      return new CudaStreamBlockProvider(() -> cuda);
    }

    @Override
    public void useNewStream() {
      CudaStream.Scope _ = cuda.device(0).poolStream().use();
    }

    @Override
    public DeviceEvent record() {
      return cuda.currentStream().record();
    }

    @Override
    public void close() {
      try {
        machine.close();
      } catch (Exception e) {
        throw new AssertionError(e);
      }
    }
  }
}
