package dev.tutti.lightgbm;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Trains with one process per rank, over Tutti and over LightGBM's own sockets. */
@Timeout(1200)
class LightGbmProcessesTest {
  private static final int ROWS = 100_000;

  /** How long a training may take where processes wait for a core. */
  private static final long SECONDS = 400;

  @TempDir Path folder;

  private final List<Process> ranks = new ArrayList<>();

  @AfterEach
  void end() throws InterruptedException {
    for (Process rank : ranks) {
      rank.destroyForcibly().waitFor(60, TimeUnit.SECONDS);
    }
  }

  @ParameterizedTest
  @CsvSource({
    "regression, 2",
    "binary, 2",
    "multiclass, 2",
    "regression, 3",
    "regression, 4",
    "binary, 4",
    "multiclass, 4"
  })
  void theModelIsThatOfLightGbmsSockets(String task, int size) throws Exception {
    String ours = train("tutti", task, size, freePorts(1));
    String theirs = train("sockets", task, size, freePorts(size));
    assertThat(ours).contains("objective=" + task, "Tree=9", "cat_threshold").isEqualTo(theirs);
  }

  /** Returns the model, which is the same on every rank. */
  private String train(String network, String task, int size, int port) throws Exception {
    ranks.clear();
    for (int rank = 0; rank < size; rank++) {
      start(network, task, 10, rank, size, port, network.equals("sockets") ? port : -1);
    }
    List<String> models = new ArrayList<>();
    for (int rank = 0; rank < size; rank++) {
      assertThat(ranks.get(rank).waitFor(SECONDS, TimeUnit.SECONDS))
          .as("rank %d ends", rank)
          .isTrue();
      assertThat(ranks.get(rank).exitValue()).as("rank %d: %s", rank, output(rank)).isZero();
      models.add(Files.readString(model(rank)));
    }
    assertThat(models).containsOnly(models.getFirst());
    return models.getFirst();
  }

  @Test
  void othersNameARankThatIsKilled() throws Exception {
    int port = freePorts(1);
    for (int rank = 0; rank < 3; rank++) {
      start("tutti", "regression", 1_000_000, rank, 3, port, rank == 1 ? 5 : -1);
    }
    assertThat(ranks.get(1).waitFor(SECONDS, TimeUnit.SECONDS)).isTrue();
    assertThat(ranks.get(1).exitValue()).isEqualTo(137);
    long killed = System.nanoTime();
    for (int rank : new int[] {0, 2}) {
      // The deadline of their operations is half an hour.
      long left = killed + TimeUnit.SECONDS.toNanos(240) - System.nanoTime();
      assertThat(ranks.get(rank).waitFor(left, TimeUnit.NANOSECONDS))
          .as("rank %d ends within 240 s: %s", rank, output(rank))
          .isTrue();
      assertThat(ranks.get(rank).exitValue()).isEqualTo(1);
      assertThat(output(rank))
          .contains("dev.tutti.lightgbm.LightGbmException: the network of LightGBM failed")
          .contains("Caused by: dev.tutti.PeerFailedException")
          .contains("first failing rank 1");
    }
  }

  private void start(
      String network, String task, int rounds, int rank, int size, int port, int last)
      throws IOException {
    List<String> command = new ArrayList<>();
    command.add(ProcessHandle.current().info().command().orElseThrow());
    command.addAll(
        List.of(
            "-Xmx256m",
            "-XX:+UseSerialGC",
            "--enable-native-access=ALL-UNNAMED",
            "-cp",
            ManagementFactory.getRuntimeMXBean().getClassPath(),
            TrainRank.class.getName(),
            network,
            task,
            Integer.toString(ROWS),
            Integer.toString(rounds),
            model(rank).toString(),
            Integer.toString(last)));
    ProcessBuilder builder =
        new ProcessBuilder(command)
            .redirectErrorStream(true)
            .redirectOutput(folder.resolve("output" + rank).toFile());
    Map<String, String> environment = builder.environment();
    environment.put("RANK", Integer.toString(rank));
    environment.put("WORLD_SIZE", Integer.toString(size));
    environment.put("MASTER_ADDR", "127.0.0.1");
    environment.put("MASTER_PORT", Integer.toString(port));
    ranks.add(builder.start());
  }

  private Path model(int rank) {
    return folder.resolve("model" + rank);
  }

  private String output(int rank) throws IOException {
    return Files.readString(folder.resolve("output" + rank), UTF_8);
  }

  /** Returns the first of several consecutive ports on which nobody listens. */
  private static int freePorts(int count) throws IOException {
    for (int first = 12_400; first < 30_000; first += count) {
      List<ServerSocket> open = new ArrayList<>();
      try {
        for (int port : IntStream.range(first, first + count).toArray()) {
          ServerSocket socket = new ServerSocket();
          open.add(socket);
          // Like LightGBM, which cannot take a port that was in use a minute ago.
          socket.setReuseAddress(false);
          socket.bind(new InetSocketAddress(InetAddress.getByName("0.0.0.0"), port));
        }
        return first;
      } catch (IOException e) {
        // A port is taken: try the ones after it.
      } finally {
        for (ServerSocket socket : open) {
          socket.close();
        }
      }
    }
    throw new IOException("no free ports");
  }
}
