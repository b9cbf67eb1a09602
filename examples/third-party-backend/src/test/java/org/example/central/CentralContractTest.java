package org.example.central;

import dev.tutti.contracts.ProcessGroupContract;
import dev.tutti.contracts.Sampled;
import dev.tutti.spi.BackendProvider;

@Sampled
class CentralContractTest extends ProcessGroupContract {
  @Override
  protected BackendProvider provider() {
    return new CentralProvider();
  }
}
