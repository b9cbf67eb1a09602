package dev.tutti.gloo;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.store.tcp.TcpStoreServer;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.lang.management.ManagementFactory;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.junit.jupiter.api.Order;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Kills one of three processes, which go on without it, and then with another one. */
@Order(1)
@Timeout(900)
class KilledMemberTest {
  private static final int SIZE = 3;

  /** A process that has been started, and its output. */
  private record Rank(Process process, BufferedReader output) {
    static Rank start(int number, int port, int elements, String shared, Path directory)
        throws IOException {
      List<String> command = new ArrayList<>();
      command.add(ProcessHandle.current().info().command().orElseThrow());
      command.addAll(
          List.of("-Xmx256m", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData", "-XX:+UseSerialGC"));
      command.addAll(List.of("--enable-native-access=ALL-UNNAMED", "-cp"));
      command.add(ManagementFactory.getRuntimeMXBean().getClassPath());
      command.add(MemberMain.class.getName());
      command.add(Integer.toString(elements));
      command.add(number < SIZE ? "init" : "join");
      ProcessBuilder builder = new ProcessBuilder(command).redirectErrorStream(true);
      if (number < SIZE) {
        builder.environment().put("RANK", Integer.toString(number));
        builder.environment().put("WORLD_SIZE", Integer.toString(SIZE));
      }
      builder.environment().put("MASTER_ADDR", "127.0.0.1");
      builder.environment().put("MASTER_PORT", Integer.toString(port));
      builder.environment().put("TORCHELASTIC_USE_AGENT_STORE", "True");
      builder.environment().put("TUTTI_BACKEND", "gloo");
      builder.environment().put("TUTTI_GLOO_SHARED_BYTES", shared);
      builder.environment().put("TUTTI_GLOO_SHARED_DIR", directory.toString());
      builder.environment().put("TUTTI_TIMEOUT", "200s");
      Process process = builder.start();
      return new Rank(
          process,
          new BufferedReader(
              new InputStreamReader(process.getInputStream(), StandardCharsets.UTF_8)));
    }

    /** Reads up to a line that begins with a word, and returns that line. */
    String line(String word) throws IOException {
      List<String> others = new ArrayList<>();
      for (String line = output.readLine(); line != null; line = output.readLine()) {
        if (line.startsWith(word)) {
          return line;
        }
        others.add(line);
      }
      throw new AssertionError("no line with " + word + " after " + others);
    }
  }

  @ParameterizedTest
  @CsvSource({"1, 1, 0", "0, 100000, 0", "2, 1, 16M", "0, 100000, 16M"})
  void theOthersGoOnAndTakeAnother(int victim, int elements, String shared, @TempDir Path directory)
      throws Exception {
    List<Rank> ranks = new ArrayList<>();
    try (TcpStoreServer server = new TcpStoreServer(0)) {
      for (int r = 0; r < SIZE; r++) {
        ranks.add(Rank.start(r, server.port(), elements, shared, directory));
      }
      for (Rank rank : ranks) {
        assertThat(rank.line("READY")).endsWith("/3 6.0");
      }
      Rank killed = ranks.remove(victim);
      killed.process().destroyForcibly();
      for (int r = 0; r < 2; r++) {
        assertThat(ranks.get(r).line("SHRUNK")).isEqualTo("SHRUNK " + r + "/2 3.0");
      }
      ranks.add(Rank.start(SIZE, server.port(), elements, shared, directory));
      for (int r = 0; r < SIZE; r++) {
        assertThat(ranks.get(r).line("GROWN")).isEqualTo("GROWN " + r + "/3 6.0");
        assertThat(ranks.get(r).line("DONE")).isEqualTo("DONE");
      }
      for (Rank rank : ranks) {
        assertThat(rank.process().waitFor()).isZero();
      }
    } finally {
      for (Rank rank : ranks) {
        rank.process().destroyForcibly();
        boolean _ = rank.process().waitFor(60, TimeUnit.SECONDS);
      }
    }
    try (Stream<Path> files = Files.walk(directory)) {
      assertThat(files.filter(Files::isRegularFile)).isEmpty();
    }
  }
}
