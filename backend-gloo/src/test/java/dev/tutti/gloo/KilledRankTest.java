package dev.tutti.gloo;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.contracts.Sampled;
import dev.tutti.store.tcp.TcpStoreServer;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.lang.management.ManagementFactory;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.junit.jupiter.api.Order;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/**
 * Kills or stops one of four processes while they reduce, exchange messages, wait in a barrier or
 * are idle, as {@code DETECTS_DEAD_PEERS} promises. A stop that should do no harm lasts a second;
 * {@code -Dtutti.stopMillis=20000} makes it 20.
 */
@Order(1)
@Timeout(900)
class KilledRankTest {
  private static final int SIZE = 4;
  private static final Duration LIMIT = Duration.ofSeconds(250);
  private static final Duration TIMEOUT = Duration.ofSeconds(200);
  private static final Duration GIVEN_UP = Duration.ofSeconds(20);

  private static final long STOP_MILLIS = Long.getLong("tutti.stopMillis", 1000);

  /** A rank that has been started, and the lines it printed. */
  private record Rank(int number, Process process, BlockingQueue<String> lines) {
    static Rank start(int number, int port, int elements, String shared, String where)
        throws IOException {
      return start(number, port, elements, shared, Path.of("/dev/shm"), where, TIMEOUT);
    }

    static Rank start(
        int number,
        int port,
        int elements,
        String shared,
        Path directory,
        String where,
        Duration timeout)
        throws IOException {
      List<String> command = new ArrayList<>();
      command.add(ProcessHandle.current().info().command().orElseThrow());
      command.addAll(
          List.of("-Xmx256m", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData", "-XX:+UseSerialGC"));
      command.addAll(List.of("--enable-native-access=ALL-UNNAMED", "-cp"));
      command.add(ManagementFactory.getRuntimeMXBean().getClassPath());
      command.add(SurvivorMain.class.getName());
      command.add(Integer.toString(elements));
      command.add(where);
      command.add(Long.toString(timeout.toSeconds()));
      ProcessBuilder builder = new ProcessBuilder(command).redirectErrorStream(true);
      builder.environment().put("RANK", Integer.toString(number));
      builder.environment().put("WORLD_SIZE", Integer.toString(SIZE));
      builder.environment().put("MASTER_ADDR", "127.0.0.1");
      builder.environment().put("MASTER_PORT", Integer.toString(port));
      builder.environment().put("TORCHELASTIC_USE_AGENT_STORE", "True");
      builder.environment().put("TUTTI_BACKEND", "gloo");
      builder.environment().put("TUTTI_GLOO_SHARED_BYTES", shared);
      builder.environment().put("TUTTI_GLOO_SHARED_DIR", directory.toString());
      builder.environment().put("TUTTI_TIMEOUT", TIMEOUT.toSeconds() + "s");
      Process process = builder.start();
      BlockingQueue<String> lines = new LinkedBlockingQueue<>();
      Thread.ofPlatform().daemon().name("rank-" + number).start(() -> pump(process, lines));
      return new Rank(number, process, lines);
    }

    private static void pump(Process process, BlockingQueue<String> lines) {
      try (BufferedReader reader =
          new BufferedReader(
              new InputStreamReader(process.getInputStream(), StandardCharsets.UTF_8))) {
        for (String line = reader.readLine(); line != null; line = reader.readLine()) {
          lines.add(line);
        }
      } catch (IOException e) {
        lines.add("the output broke off: " + e);
      }
    }

    String awaitLine(String start, long deadlineNanos) throws InterruptedException {
      List<String> others = new ArrayList<>();
      while (true) {
        String line = lines.poll(deadlineNanos - System.nanoTime(), TimeUnit.NANOSECONDS);
        assertThat(line).as("rank %d: a line with %s after %s", number, start, others).isNotNull();
        if (line.startsWith(start)) {
          return line;
        }
        others.add(line);
      }
    }
  }

  @Sampled
  @ParameterizedTest
  @CsvSource({
    "2, 1, 0, ordinary",
    "0, 1000, 0, ordinary",
    "3, 4000000, 0, ordinary",
    "0, 1, 16M, ordinary",
    "2, 4000000, 16M, ordinary",
    "1, 4000000, 16M, symmetric",
    "0, 1000, 16M, barrier",
    "3, 1000, 16M, barrier",
    "1, 4000000, 0, messages",
    "0, 1, 16M, messages",
    "3, 4000000, 16M, messages",
    "0, 1, 0, nothing",
    "2, 1, 16M, nothing"
  })
  void everySurvivorNamesTheKilledRankAndExits(
      int victim, int elements, String shared, String where) throws Exception {
    Starting starting = (rank, port) -> Rank.start(rank, port, elements, shared, where);
    run(starting, ranks -> everySurvivorNames(victim, where, ranks));
  }

  /** On each of two hosts, two ranks share memory. */
  @Sampled
  @ParameterizedTest
  @CsvSource({
    "0, 1, ordinary",
    "1, 1, ordinary",
    "2, 4000000, ordinary",
    "3, 4000000, ordinary",
    "3, 1000, messages"
  })
  void everySurvivorOnTwoHostsNamesTheKilledRankAndExits(
      int victim, int elements, String where, @TempDir Path directory) throws Exception {
    Starting starting = onHosts(directory, 2, elements, where, TIMEOUT);
    run(starting, ranks -> everySurvivorNames(victim, where, ranks));
    try (Stream<Path> files = Files.walk(directory)) {
      assertThat(files.filter(Files::isRegularFile)).isEmpty();
    }
  }

  /** Kills a rank. */
  private static void everySurvivorNames(int victim, String where, List<Rank> ranks)
      throws Exception {
    ranks.get(victim).process().destroyForcibly();
    List<Rank> survivors = ranks.stream().filter(rank -> rank.number() != victim).toList();
    // Half the time that they would wait for a silent rank.
    long limit = System.nanoTime() + TIMEOUT.dividedBy(2).toNanos();
    List<String> lines = new ArrayList<>();
    for (Rank rank : survivors) {
      lines.add(rank.awaitLine("FAILED", limit));
    }
    assertThat(lines)
        .allSatisfy(
            line ->
                assertThat(line)
                    .startsWith("FAILED PeerFailedException " + victim + " ")
                    .contains(where.equals("barrier") ? "barrier on channel 0" : "is gone")
                    .contains("rank " + victim));
    for (Rank rank : survivors) {
      assertExits(rank, limit);
      assertThat(rank.process().exitValue()).isZero();
    }
  }

  /** What happens to ranks that have met. */
  private interface Body {
    void run(List<Rank> ranks) throws Exception;
  }

  private interface Starting {
    Rank start(int number, int port) throws IOException;
  }

  /** Starts ranks on hosts that share no memory. */
  private static Starting onHosts(
      Path directory, int ranksOfHost, int elements, String where, Duration timeout) {
    return (number, port) -> {
      Path host = Files.createDirectories(directory.resolve("host" + number / ranksOfHost));
      return Rank.start(number, port, elements, "16M", host, where, timeout);
    };
  }

  /** Runs ranks, and kills or stops one. */
  private static void run(Starting starting, Body body) throws Exception {
    List<Rank> ranks = new ArrayList<>();
    try (TcpStoreServer server = new TcpStoreServer(0)) {
      for (int r = 0; r < SIZE; r++) {
        ranks.add(starting.start(r, server.port()));
      }
      long ready = System.nanoTime() + LIMIT.toNanos();
      for (Rank rank : ranks) {
        rank.awaitLine("READY", ready);
      }
      body.run(ranks);
    } finally {
      for (Rank rank : ranks) {
        rank.process().destroyForcibly();
        rank.process().waitFor(60, TimeUnit.SECONDS);
      }
    }
  }

  /**
   * A rank that is stopped for longer than the timeout is given up. It exits when it continues, and
   * all ranks, including itself, name it.
   */
  @ParameterizedTest
  @CsvSource({"4, 1, messages", "2, 4000000, ordinary"})
  @Tag("full")
  void aStoppedRankIsGivenUp(int ranksOfHost, int elements, String where, @TempDir Path directory)
      throws Exception {
    Starting starting = onHosts(directory, ranksOfHost, elements, where, GIVEN_UP);
    run(starting, KilledRankTest::assertThatAllGiveUpRank1);
  }

  /** Stops rank 1. */
  private static void assertThatAllGiveUpRank1(List<Rank> ranks) throws Exception {
    Rank stopped = ranks.get(1);
    signal(stopped, "STOP");
    long limit = System.nanoTime() + LIMIT.toNanos();
    for (Rank rank : ranks) {
      if (rank.number() != stopped.number()) {
        String line = rank.awaitLine("FAILED", limit);
        assertThat(line).containsPattern("FAILED [A-Za-z]+ 1 ").contains("rank 1 does not answer");
        assertExits(rank, limit);
      }
    }
    signal(stopped, "CONT");
    limit = System.nanoTime() + LIMIT.toNanos();
    assertThat(stopped.awaitLine("FAILED", limit))
        .containsPattern("FAILED [A-Za-z]+ 1 ")
        .contains("this rank, 1, made no progress");
    assertExits(stopped, limit);
  }

  private static void assertExits(Rank rank, long limit) throws InterruptedException {
    assertThat(rank.process().waitFor(limit - System.nanoTime(), TimeUnit.NANOSECONDS))
        .as("rank %d exits by itself", rank.number())
        .isTrue();
  }

  /** A rank that is stopped for less than the timeout only delays the others. */
  @Sampled
  @ParameterizedTest
  @CsvSource({"4, 1000, ordinary", "2, 1000, messages"})
  void aStoppedRankGoesOn(int ranksOfHost, int elements, String where, @TempDir Path directory)
      throws Exception {
    run(
        onHosts(directory, ranksOfHost, elements, where, TIMEOUT),
        ranks -> {
          signal(ranks.get(1), "STOP");
          Thread.sleep(STOP_MILLIS);
          for (Rank rank : ranks) {
            assertThat(rank.process().isAlive()).isTrue();
            rank.lines().clear();
          }
          signal(ranks.get(1), "CONT");
          long limit = System.nanoTime() + LIMIT.toNanos();
          // One line that arrives now may date from before the stop, five cannot.
          for (int round = 0; round < 5; round++) {
            for (Rank rank : ranks) {
              assertThat(rank.awaitLine("", limit)).isEqualTo("ON");
            }
          }
        });
  }

  private static void signal(Rank rank, String name) throws Exception {
    Process kill = new ProcessBuilder("kill", "-" + name, "" + rank.process().pid()).start();
    assertThat(kill.waitFor(60, TimeUnit.SECONDS)).isTrue();
    assertThat(kill.exitValue()).isZero();
  }
}
