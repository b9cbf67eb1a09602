package dev.tutti.cuda;

import dev.tutti.testing.StreamBlockContract;
import dev.tutti.testing.StreamBlockFixture;

class GpuStreamBlockTest extends StreamBlockContract {
  @Override
  protected StreamBlockFixture fixture() {
    return new FakeStreamBlockContractTest.Fixture(Gpu.require(), () -> {});
  }
}
