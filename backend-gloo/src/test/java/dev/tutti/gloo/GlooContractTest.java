package dev.tutti.gloo;

import dev.tutti.Settings;
import dev.tutti.contracts.ProcessGroupContract;
import dev.tutti.spi.BackendProvider;
import org.junit.jupiter.api.Order;

@Order(1)
class GlooContractTest extends ProcessGroupContract {
  @Override
  protected BackendProvider provider() {
    return new GlooProvider();
  }

  @Override
  protected Settings settings() {
    return GlooWorld.settings();
  }
}
