package dev.tutti.aeron.cluster;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.Settings;
import dev.tutti.contracts.ServiceDeclarations;
import dev.tutti.spi.StoreProvider;
import java.io.IOException;
import java.util.Map;
import java.util.ServiceLoader;
import org.junit.jupiter.api.Test;

class AeronClusterProviderTest {
  private static final String MODULE = "dev.tutti.aeron.cluster";

  private final StoreProvider provider =
      ServiceLoader.load(StoreProvider.class).stream()
          .map(ServiceLoader.Provider::get)
          .filter(found -> found.scheme().equals("aeron-cluster"))
          .findFirst()
          .orElseThrow();

  @Test
  void aStoreThatDoesNotEncryptIsRefusedWhereAllIsToBeEncrypted() {
    assertThat(provider.unusableReason(Settings.ofEnvironment(Map.of("TUTTI_TLS", "true"))))
        .hasValueSatisfying(
            reason ->
                assertThat(reason)
                    .startsWith("TUTTI_TLS is set, but a store over Aeron does not encrypt"));
  }

  @Test
  void settingsAreRead() {
    assertThat(provider.settings())
        .extracting(setting -> setting.name())
        .containsExactly(
            "TUTTI_AERON_DIR",
            "TUTTI_AERON_DRIVER",
            "TUTTI_AERON_LEASE",
            "TUTTI_X_AERON_SPIN",
            "TUTTI_TOKEN",
            "TUTTI_TLS");
  }

  @Test
  void theModuleDeclaresTheSameServicesTwice() throws IOException {
    var modules = ServiceDeclarations.modulesOnClassPath(getClass().getClassLoader(), MODULE);
    assertThat(modules).containsOnlyKeys(MODULE);
    assertThat(ServiceDeclarations.differences(modules.get(MODULE))).isEmpty();
  }
}
