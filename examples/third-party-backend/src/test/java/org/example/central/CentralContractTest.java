package org.example.central;

import dev.tutti.spi.BackendProvider;
import dev.tutti.testing.ProcessGroupContract;
import dev.tutti.testing.Sampled;

@Sampled
class CentralContractTest extends ProcessGroupContract {
  @Override
  protected BackendProvider provider() {
    return new CentralProvider();
  }
}
