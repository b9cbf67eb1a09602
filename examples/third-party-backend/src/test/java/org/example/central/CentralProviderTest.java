package org.example.central;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.Settings;
import dev.tutti.contracts.ServiceDeclarations;
import dev.tutti.spi.BackendProvider;
import java.util.Map;
import java.util.ServiceLoader;
import org.junit.jupiter.api.Test;

class CentralProviderTest {
  @Test
  void theJarOffersItOnClassPathAndModulePath() {
    assertThat(ServiceLoader.load(BackendProvider.class))
        .hasAtLeastOneElementOfType(CentralProvider.class);
    assertThat(
            ServiceDeclarations.modulesOnClassPath(getClass().getClassLoader(), "org.example")
                .values())
        .hasSize(1)
        .allSatisfy(root -> assertThat(ServiceDeclarations.differences(root)).isEmpty());
  }

  @Test
  void anAddressOfAnotherHostIsAReasonAgainstIt() {
    CentralProvider provider = new CentralProvider();
    Settings settings = Settings.ofEnvironment(Map.of());
    assertThat(provider.unusableReason(settings)).isEmpty();
    // An address reserved for documentation, so no host has it.
    assertThat(provider.unusableReason(settings.with(CentralProvider.ADDRESS, "192.0.2.1")))
        .hasValue("no interface of this host has the address 192.0.2.1");
  }
}
