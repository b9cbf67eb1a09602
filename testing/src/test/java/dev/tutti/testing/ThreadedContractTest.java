package dev.tutti.testing;

import dev.tutti.fake.ThreadedProvider;
import dev.tutti.spi.BackendProvider;

// @start region="suite"
class ThreadedContractTest extends ProcessGroupContract {
  @Override
  protected BackendProvider provider() {
    return new ThreadedProvider();
  }
}
// @end
