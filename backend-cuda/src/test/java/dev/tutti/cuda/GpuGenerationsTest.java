package dev.tutti.cuda;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.Settings;
import dev.tutti.cuda.provider.NcclBackendProvider;
import dev.tutti.store.tcp.TcpStoreServer;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.InetAddress;
import java.net.URI;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/**
 * Kills one of two processes on GPUs; the other continues alone, another one joins, and both change
 * twenty times more. On *cuda* they share a GPU if there is only one.
 */
@ExtendWith(Gpu.class)
class GpuGenerationsTest {
  private final List<Process> started = new ArrayList<>();
  @TempDir private Path directory;

  /** NCCL needs a GPU for each rank. */
  private static List<String> backends() {
    boolean hasNccl =
        Cuda.get().deviceCount() > 1
            && new NcclBackendProvider().unusableReason(Settings.fromEnvironment()).isEmpty();
    return hasNccl ? List.of("cuda", "nccl") : List.of("cuda");
  }

  @ParameterizedTest
  @MethodSource("backends")
  void aGroupGoesOnWithoutAKilledRankAndWithAnother(String backend) throws Exception {
    try (TcpStoreServer server = new TcpStoreServer(InetAddress.getLoopbackAddress(), 0)) {
      String store = "tcp://127.0.0.1:" + server.port();
      for (int rank = 0; rank < 2; rank++) {
        start(store, backend, rank);
      }
      awaitText(0, "ready\n");
      started.get(1).destroyForcibly();
      awaitText(0, "alone\n");
      start(store, backend, -1);
      requireGood(0);
      requireGood(2);
    } finally {
      started.forEach(Process::destroyForcibly);
    }
  }

  private void start(String store, String backend, int rank) throws IOException {
    ProcessBuilder builder =
        new ProcessBuilder(
            ProcessHandle.current().info().command().orElseThrow(),
            "--enable-native-access=ALL-UNNAMED",
            "-Xmx512m",
            "-cp",
            System.getProperty("java.class.path"),
            GpuMember.class.getName(),
            store,
            backend,
            String.valueOf(rank));
    URI address = URI.create(store);
    // The test serves the store, as a launcher does.
    builder.environment().put("TORCHELASTIC_USE_AGENT_STORE", "True");
    builder.environment().put("MASTER_ADDR", address.getHost());
    builder.environment().put("MASTER_PORT", String.valueOf(address.getPort()));
    Path out = directory.resolve("out" + started.size());
    started.add(builder.redirectErrorStream(true).redirectOutput(out.toFile()).start());
  }

  private void awaitText(int number, String text) {
    Until.holds(
        "'" + text.strip() + "' of process " + number,
        Duration.ofMinutes(3),
        () -> {
          // What has ended prints nothing more.
          boolean ended = !started.get(number).isAlive();
          String printed = text(number);
          assertThat(ended && !printed.contains(text))
              .as("whether process %d ended early: %s", number, printed)
              .isFalse();
          return printed.contains(text);
        });
  }

  private void requireGood(int number) throws InterruptedException {
    boolean ended = started.get(number).waitFor(3, TimeUnit.MINUTES);
    assertThat(ended).as("whether process " + number + " ends: " + text(number)).isTrue();
    assertThat(text(number)).contains("good\n");
  }

  private String text(int number) {
    try {
      return Files.readString(directory.resolve("out" + number), UTF_8);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }
}
