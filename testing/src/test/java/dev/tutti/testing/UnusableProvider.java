package dev.tutti.testing;

import dev.tutti.Capabilities;
import dev.tutti.Settings;
import dev.tutti.spi.Backend;
import dev.tutti.spi.BackendContext;
import dev.tutti.spi.BackendProvider;
import java.util.Optional;
import java.util.Set;

/** The provider of a backend that cannot run anywhere; a service of the tests. */
public final class UnusableProvider implements BackendProvider {
  @Override
  public int spiVersion() {
    return SPI_VERSION;
  }

  @Override
  public String name() {
    return "unusable";
  }

  @Override
  public Set<String> deviceTypes() {
    return Set.of("cpu");
  }

  @Override
  public Capabilities capabilities(String deviceType) {
    return Capabilities.ofVersion1();
  }

  @Override
  public Optional<String> unusableReason(Settings settings) {
    return Optional.of("it is for tests");
  }

  @Override
  public boolean isAutoSelectable(String deviceType) {
    return false;
  }

  @Override
  public Backend create(BackendContext context) {
    throw new AssertionError("nobody should create this");
  }
}
