package dev.tutti.gloo;

import dev.tutti.Capabilities;
import dev.tutti.Capabilities.Feature;
import dev.tutti.Settings;
import dev.tutti.contracts.Sampled;
import java.util.Set;
import org.junit.jupiter.api.Order;

/** Runs the contract suite with ranks on one host that do not share memory. */
@Order(1)
@Sampled
class GlooSocketsContractTest extends GlooContractTest {
  @Override
  protected Settings settings() {
    return GlooWorld.settings(GlooProvider.SHARED_BYTES.name(), "0");
  }

  @Override
  protected Capabilities capabilities() {
    return super.capabilities().without(Set.of(Feature.SYMMETRIC_MEMORY));
  }
}
