package dev.tutti.aeron;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.tutti.RendezvousException;
import dev.tutti.Settings;
import dev.tutti.Store;
import dev.tutti.contracts.ServiceDeclarations;
import dev.tutti.shared.FreePorts;
import dev.tutti.spi.StoreProvider;
import java.io.IOException;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Map;
import java.util.ServiceLoader;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class AeronStoreProviderTest {
  private static final Duration TIMEOUT = Duration.ofMinutes(2);

  private final StoreProvider provider =
      ServiceLoader.load(StoreProvider.class).stream()
          .map(ServiceLoader.Provider::get)
          .filter(found -> found.scheme().equals("aeron"))
          .findFirst()
          .orElseThrow();

  private static StoreProvider.Request request(String url, int rank, Map<String, String> settings) {
    return StoreProvider.Request.of(URI.create(url), rank, 2)
        .withHost(rank == 0)
        .withTimeout(TIMEOUT)
        .withSettings(Settings.ofEnvironment(settings));
  }

  @Test
  void ranksMeet() throws Exception {
    int port = FreePorts.one();
    assertThat(provider.unusableReason(Settings.ofEnvironment(Map.of()))).isEmpty();
    String url = "aeron://localhost:" + port;
    try (Store first = provider.open(request(url, 0, Map.of()));
        Store second = provider.open(request(url, 1, Map.of("TUTTI_AERON_TRANSPORT", "udp")))) {
      first.set("key", "value");
      assertThat(second.get("key")).asString(StandardCharsets.UTF_8).isEqualTo("value");
      assertThat(second.timeout()).isEqualTo(TIMEOUT);
      assertThat(first).hasToString("AeronStore[127.0.0.1:" + port + ", shared memory]");
      assertThat(second).hasToString("AeronStore[localhost:" + port + ", UDP]");
    }
  }

  @ParameterizedTest
  @ValueSource(strings = {"aeron://host", "aeron://", "aeron://ho st:1", "aeron:///path"})
  void badPlacesAreRefused(String url) {
    String written = url.replace(" ", "%20");
    assertThatThrownBy(
            () -> {
              URI place =
                  written.equals("aeron://") ? new URI("aeron", "", "/", null) : new URI(written);
              provider.open(
                  StoreProvider.Request.of(place, 1, 2)
                      .withTimeout(Duration.ofSeconds(1))
                      .withSettings(Settings.ofEnvironment(Map.of())));
            })
        .isInstanceOf(RendezvousException.class)
        .hasMessageContaining("aeron");
  }

  @Test
  void aStoreThatDoesNotEncryptIsRefusedWhereAllIsToBeEncrypted() {
    Settings settings = Settings.ofEnvironment(Map.of("TUTTI_TLS", "true"));
    assertThat(provider.unusableReason(settings))
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
            "TUTTI_AERON_TRANSPORT",
            "TUTTI_AERON_DIR",
            "TUTTI_AERON_DRIVER",
            "TUTTI_AERON_LEASE",
            "TUTTI_X_AERON_SPIN",
            "TUTTI_TOKEN",
            "TUTTI_TLS");
    AeronStoreOptions options =
        AeronStoreOptions.of(
            "host",
            1,
            Settings.ofEnvironment(
                Map.of(
                    "TUTTI_AERON_TRANSPORT", "IPC",
                    "TUTTI_AERON_DIR", "/some/where",
                    "TUTTI_AERON_LEASE", "7s",
                    "TUTTI_X_AERON_SPIN", "1")));
    assertThat(options.transport()).isEqualTo(AeronStoreOptions.Transport.IPC);
    assertThat(options.directory()).hasToString("/some/where");
    assertThat(options.lease()).isEqualTo(Duration.ofSeconds(7));
    assertThat(options.spin()).isTrue();
  }

  @Test
  void theModuleDeclaresTheSameServicesTwice() throws IOException {
    var modules =
        ServiceDeclarations.modulesOnClassPath(getClass().getClassLoader(), "dev.tutti.aeron");
    assertThat(modules).containsOnlyKeys("dev.tutti.aeron");
    assertThat(ServiceDeclarations.differences(modules.get("dev.tutti.aeron"))).isEmpty();
  }
}
