package dev.tutti.runtime.rendezvous;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.tutti.BackendException;
import dev.tutti.GroupOptions;
import dev.tutti.ProcessGroup;
import dev.tutti.RendezvousException;
import dev.tutti.Settings;
import dev.tutti.StoreConnectionException;
import dev.tutti.StoreTokenException;
import dev.tutti.Tensor;
import dev.tutti.runtime.group.LocalProvider;
import dev.tutti.runtime.group.LocalWorld;
import dev.tutti.runtime.settings.Providers;
import dev.tutti.runtime.settings.RuntimeSettings;
import dev.tutti.spi.HostPort;
import dev.tutti.store.HashStore;
import dev.tutti.store.JobToken;
import dev.tutti.store.tcp.TcpStoreServer;
import java.net.InetAddress;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.function.IntFunction;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class RendezvousTest {
  private static GroupOptions options(Map<String, String> environment) {
    return GroupOptions.DEFAULT
        .withProvider(new LocalProvider())
        .withSettings(Settings.ofEnvironment(environment));
  }

  /**
   * True only if the address or a setting is wrong: a peer that is missing now may be there next
   * time.
   */
  @ParameterizedTest
  @CsvSource({
    "RANK, 5, true",
    "MASTER_PORT, 99999, true",
    "TUTTI_STORE, redis, true",
    "TUTTI_TIMEOUT, soon, true",
    "TUTTI_CLOSE_TIMEOUT, 3s, false"
  })
  void tellsTheLauncherWhereItIsOfNoUseToStartAgain(
      String name, String value, boolean told, @TempDir Path folder) {
    Path file = folder.resolve("no-restart");
    Map<String, String> environment =
        new java.util.HashMap<>(
            Map.of("RANK", "1", "WORLD_SIZE", "2", "MASTER_ADDR", "127.0.0.1", "MASTER_PORT", "1"));
    environment.put("TUTTI_X_NO_RESTART", file.toString());
    environment.put("TUTTI_TIMEOUT", "10ms");
    environment.put(name, value);
    for (int time = 0; time < 2; time++) {
      assertThatThrownBy(() -> ProcessGroup.init(options(environment)));
    }
    assertThat(Files.exists(file)).isEqualTo(told);
  }

  /** Reads variables as a file from Windows gives them. */
  @Test
  void whiteSpaceAroundVariablesDoesNotCount() {
    try (TcpStoreServer server = new TcpStoreServer(InetAddress.getLoopbackAddress(), 0);
        ProcessGroup group =
            ProcessGroup.init(
                options(
                    Map.of(
                        "RANK", "0\r",
                        "WORLD_SIZE", " 1",
                        "MASTER_ADDR", "127.0.0.1\r",
                        "MASTER_PORT", " " + server.port() + "\r",
                        "TORCHELASTIC_USE_AGENT_STORE", "1")))) {
      assertThat(group.size()).isOne();
    }
  }

  @ParameterizedTest
  @CsvSource({"1 2", "x", "-1", "65536", "99999999999", "1/2"})
  void aPortThatIsNoneIsNamed(String port) {
    assertThatThrownBy(
            () ->
                ProcessGroup.init(
                    options(
                        Map.of(
                            "RANK", "0",
                            "WORLD_SIZE", "1",
                            "MASTER_ADDR", "127.0.0.1",
                            "MASTER_PORT", port))))
        .isInstanceOf(RendezvousException.class)
        .hasMessage("MASTER_PORT must be a port number, at most 65535, not '" + port + "'");
  }

  @Test
  void aFileThatCannotBeUsedIsNotAskedForAFirewall(@TempDir Path folder) {
    String url = "file://" + folder.resolve("none/store") + "?rank=1&world_size=2";
    assertThatThrownBy(() -> ProcessGroup.init(options(Map.of()).withInitMethod(url)))
        .isInstanceOf(RendezvousException.class)
        .hasMessageEndingWith(". Check that all ranks can reach the store");
  }

  @ParameterizedTest
  @CsvSource({"RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"})
  void namesTheMissingVariable(String missing) {
    Map<String, String> environment =
        new java.util.HashMap<>(
            Map.of("RANK", "0", "WORLD_SIZE", "1", "MASTER_ADDR", "127.0.0.1", "MASTER_PORT", "1"));
    environment.remove(missing);
    assertThatThrownBy(() -> ProcessGroup.init(options(environment)))
        .isInstanceOf(RendezvousException.class)
        .hasMessageContaining("needs the environment variable " + missing + ", which is not set");
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      value = {
        "tcp://127.0.0.1:1?world_size=2|rank is missing",
        "tcp://127.0.0.1:1?rank=0|world_size is missing",
        "tcp://127.0.0.1:1?rank=x&world_size=2|rank is not a number: 'x'",
        "tcp://127.0.0.1:1?rank=2&world_size=2|rank must be in 0..1, not 2",
        "carrier://pigeon?rank=0&world_size=2|no store for the scheme 'carrier'",
        "aeron://a:1?rank=0&world_size=2|add the jar tutti-store-aeron",
        "aeron-cluster://a:1?rank=0&world_size=2|add the jar tutti-store-aeron-cluster",
        "tcp://127.0.0.1:abc?rank=0&world_size=1|the port must be a number from 1 to 65535, not"
            + " 'abc'",
        "tcp://:1?rank=0&world_size=1|the host is missing, in tcp://:1",
        "tcp://my+host:1?rank=0&world_size=1|'my+host' is not a host, in tcp://my+host:1",
        "tcp://127.0.0.1?rank=0&world_size=1|the port number is missing in tcp://127.0.0.1",
        "not a url|is not a URL"
      })
  void refusesBadPlaces(String place, String message) {
    assertThatThrownBy(() -> ProcessGroup.init(options(Map.of()).withInitMethod(place)))
        .isInstanceOf(RendezvousException.class)
        .hasMessageContaining(message);
  }

  @Test
  void aUrlWithoutARankTakesThatOfTheLauncher(@TempDir Path folder) {
    String url = folder.resolve("store").toUri().toString();
    Map<String, String> environment = Map.of("RANK", " 0\r", "WORLD_SIZE", "1");
    try (ProcessGroup group = ProcessGroup.init(options(environment).withInitMethod(url))) {
      assertThat(group.size()).isOne();
    }
    assertThatThrownBy(
            () -> ProcessGroup.init(options(environment).withInitMethod(url + "?rank=7")))
        .isInstanceOf(RendezvousException.class)
        .hasMessageContaining("rank must be in 0..0, not 7");
  }

  /** Rank 0 would otherwise serve a store of its own, at a port that is in use. */
  @ParameterizedTest
  @CsvSource({"127.0.0.1", "localhost"})
  void theStoreAtAUrlMayBeTheLaunchers(String host) {
    try (TcpStoreServer server = new TcpStoreServer(InetAddress.getLoopbackAddress(), 0)) {
      Map<String, String> environment =
          Map.of(
              "RANK", "0",
              "WORLD_SIZE", "1",
              "MASTER_ADDR", "127.0.0.1",
              "MASTER_PORT", Integer.toString(server.port()),
              "TORCHELASTIC_USE_AGENT_STORE", "True");
      String url = "tcp://" + host + ":" + server.port();
      try (ProcessGroup group = ProcessGroup.init(options(environment).withInitMethod(url))) {
        assertThat(group.size()).isOne();
      }
    }
  }

  @ParameterizedTest
  @CsvSource({"rank_0.invalid", "::1", "[::1]", "127.0.0.1"})
  void triesEveryKindOfHost(String host) {
    Map<String, String> environment =
        Map.of("RANK", "1", "WORLD_SIZE", "2", "MASTER_ADDR", host, "MASTER_PORT", "1");
    assertThatThrownBy(
            () -> ProcessGroup.init(options(environment).withTimeout(Duration.ofMillis(200))))
        .isInstanceOf(RendezvousException.class)
        .hasMessageContaining(
            "rank 1/2 cannot meet the other ranks at tcp://" + HostPort.parse(host))
        .hasMessageContaining("Check that rank 0, which serves the store, is running")
        .hasCauseInstanceOf(StoreConnectionException.class);
  }

  @Test
  void saysThatTheTokensDiffer() {
    try (TcpStoreServer server =
        new TcpStoreServer(
            InetAddress.getLoopbackAddress(), 0, JobToken.of("one token of a job"))) {
      String port = Integer.toString(server.port());
      Map<String, String> environment =
          Map.of(
              "RANK", "1",
              "WORLD_SIZE", "2",
              "MASTER_ADDR", "127.0.0.1",
              "MASTER_PORT", port,
              "TUTTI_TOKEN", "another token of a job");
      assertThatThrownBy(() -> ProcessGroup.init(options(environment)))
          .isInstanceOf(RendezvousException.class)
          .hasMessageContaining("rank 1/2 cannot meet the other ranks at tcp://127.0.0.1:" + port)
          .hasMessageContaining(
              "its token differs from this process's; TUTTI_TOKEN must be the same")
          .hasMessageNotContaining("firewall")
          .hasMessageNotContaining("one token of a job")
          .hasCauseInstanceOf(StoreTokenException.class);
    }
  }

  @Test
  void refusesAnAddressThatHasAPort() {
    Map<String, String> environment =
        Map.of("RANK", "1", "WORLD_SIZE", "2", "MASTER_ADDR", "node:7", "MASTER_PORT", "1");
    assertThatThrownBy(() -> ProcessGroup.init(options(environment)))
        .isInstanceOf(RendezvousException.class)
        .hasMessageContaining("MASTER_ADDR must be a host without a port");
  }

  @Test
  void storeAndPlaceExcludeEachOther() {
    assertThatThrownBy(
            () ->
                ProcessGroup.init(
                    options(Map.of())
                        .withStore(new HashStore())
                        .withRank(0)
                        .withSize(1)
                        .withInitMethod("env://")))
        .isInstanceOf(RendezvousException.class)
        .hasMessageContaining("cannot be used together");
  }

  @Test
  void namesAnUnknownBackend() {
    GroupOptions options =
        GroupOptions.DEFAULT.withBackend("smoke").withSettings(Settings.ofEnvironment(Map.of()));
    assertThatThrownBy(() -> ProcessGroup.init(options))
        .isInstanceOf(BackendException.class)
        .hasMessageContaining("no backend 'smoke' on the class path");
  }

  @Test
  void namesBothProvidersOfOneName() {
    assertThatThrownBy(
            () ->
                Providers.byKey(
                    "backend",
                    List.of(new LocalProvider(), new LocalProvider()),
                    LocalProvider::name))
        .isInstanceOf(BackendException.class)
        .hasMessageContaining("two providers offer the backend 'local'")
        .hasMessageMatching("(?s).*LocalProvider in file.*LocalProvider in file.*");
  }

  @Test
  void readsSettingsAndTellsTheirSource() {
    Settings settings =
        Settings.ofEnvironment(Map.of("TUTTI_TIMEOUT", "1.5", "TUTTI_FLIGHT_RECORD", "many"));
    assertThat(settings.get(RuntimeSettings.TIMEOUT)).hasMillis(1500);
    assertThat(settings.source(RuntimeSettings.TIMEOUT)).isEqualTo(Settings.Source.ENVIRONMENT);
    assertThat(settings.source(RuntimeSettings.CLOSE_TIMEOUT)).isEqualTo(Settings.Source.DEFAULT);
    assertThat(settings.with(RuntimeSettings.TIMEOUT, "2m").get(RuntimeSettings.TIMEOUT))
        .hasMinutes(2);
    assertThatThrownBy(() -> settings.get(RuntimeSettings.FLIGHT_RECORD))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("TUTTI_FLIGHT_RECORD='many' (from the environment)");
  }

  @Test
  void ranksMeetByFile(@TempDir Path folder) throws Exception {
    Path file = folder.resolve("store");
    assertThat(meet(rank -> "file://" + file + "?rank=" + rank + "&world_size=3", Map.of()))
        .containsExactly(3f, 3f, 3f);
    // A rank that closes waits no longer than 2 s until the store is closed.
    LocalWorld.until("the file is gone", () -> !Files.exists(file));
  }

  @Test
  void ranksMeetAtAStoreOfTheLauncher() throws Exception {
    try (TcpStoreServer server = new TcpStoreServer(0)) {
      Map<String, String> environment =
          Map.of(
              "MASTER_ADDR", "127.0.0.1",
              "MASTER_PORT", Integer.toString(server.port()),
              "TORCHELASTIC_USE_AGENT_STORE", "True");
      assertThat(meet(rank -> "env://?rank=" + rank + "&world_size=3", environment))
          .containsExactly(3f, 3f, 3f);
    }
  }

  private static List<Float> meet(IntFunction<String> place, Map<String, String> environment)
      throws Exception {
    LocalProvider provider = new LocalProvider();
    List<Callable<Float>> ranks = new ArrayList<>();
    for (int r = 0; r < 3; r++) {
      GroupOptions options =
          GroupOptions.DEFAULT
              .withProvider(provider)
              .withSettings(Settings.ofEnvironment(environment))
              .withTimeout(Duration.ofMinutes(2))
              .withInitMethod(place.apply(r));
      ranks.add(
          () -> {
            try (ProcessGroup group = ProcessGroup.init(options)) {
              Tensor tensor = Tensor.of((float) group.rank());
              group.allReduce(tensor);
              return (float) tensor.getDouble(0);
            }
          });
    }
    List<Float> sums = new ArrayList<>();
    try (ExecutorService threads = Executors.newFixedThreadPool(3)) {
      for (Future<Float> rank : threads.invokeAll(ranks, 4, TimeUnit.MINUTES)) {
        sums.add(rank.get());
      }
    }
    return sums;
  }
}
