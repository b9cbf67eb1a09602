package dev.tutti.cuda;

import dev.tutti.contracts.StreamBlockContract;
import dev.tutti.contracts.StreamBlockFixture;
import org.junit.jupiter.api.extension.ExtendWith;

@ExtendWith(Gpu.class)
class GpuStreamBlockTest extends StreamBlockContract {
  @Override
  protected StreamBlockFixture fixture() {
    return new FakeStreamBlockContractTest.Fixture(Cuda.get(), () -> {});
  }
}
