package dev.tutti.gloo;

import dev.tutti.Capabilities;
import dev.tutti.Capabilities.Feature;
import dev.tutti.contracts.Sampled;
import dev.tutti.spi.BackendProvider;
import java.nio.file.Path;
import java.util.Set;
import org.junit.jupiter.api.io.TempDir;

/**
 * Runs the contract suite with two hosts of two ranks, and with one host of two ranks and one of
 * one.
 */
@Sampled
class TwoLevelContractTest extends GlooContractTest {
  @TempDir static Path directory;

  @Override
  protected BackendProvider provider() {
    return new HostsProvider(directory, rank -> rank / 2);
  }

  @Override
  protected int[] worldSizes() {
    return new int[] {3, 4};
  }

  @Override
  protected Capabilities capabilities() {
    return super.capabilities().without(Set.of(Feature.SYMMETRIC_MEMORY));
  }
}
