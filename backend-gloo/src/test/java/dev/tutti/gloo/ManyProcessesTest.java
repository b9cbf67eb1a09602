package dev.tutti.gloo;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.store.tcp.TcpStoreServer;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.management.ManagementFactory;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * Runs a rendezvous of processes on one host that are all up already. There are ten; {@code
 * -Dtutti.ranks=64} makes them 64.
 */
@Timeout(600)
@Tag("full")
class ManyProcessesTest {
  private static final int RANKS = Integer.getInteger("tutti.ranks", 10);

  /**
   * More than the setup takes: new processes need their cores for much else, and so do other tests.
   */
  private static final Duration SET_UP = Duration.ofSeconds(120 + RANKS);

  /** A process that has been started, and the lines it printed. */
  private record Rank(Process process, BlockingQueue<String> lines) {
    static Rank start(int number, int port, String shared) throws IOException {
      List<String> command = new ArrayList<>();
      command.add(ProcessHandle.current().info().command().orElseThrow());
      command.addAll(
          List.of("-Xmx128m", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData", "-XX:+UseSerialGC"));
      command.addAll(List.of("--enable-native-access=ALL-UNNAMED", "-cp"));
      command.add(ManagementFactory.getRuntimeMXBean().getClassPath());
      command.add(ManyProcessesMain.class.getName());
      ProcessBuilder builder =
          new ProcessBuilder(command).redirectError(ProcessBuilder.Redirect.INHERIT);
      builder.environment().put("RANK", Integer.toString(number));
      builder.environment().put("WORLD_SIZE", Integer.toString(RANKS));
      builder.environment().put("MASTER_ADDR", "127.0.0.1");
      builder.environment().put("MASTER_PORT", Integer.toString(port));
      builder.environment().put("TORCHELASTIC_USE_AGENT_STORE", "True");
      builder.environment().put("TUTTI_BACKEND", "gloo");
      builder.environment().put("TUTTI_GLOO_SHARED_BYTES", shared);
      builder.environment().put("TUTTI_TIMEOUT", 300 + RANKS + "s");
      Process process = builder.start();
      BlockingQueue<String> lines = new LinkedBlockingQueue<>();
      Thread.ofPlatform().daemon().start(() -> pump(process, lines));
      return new Rank(process, lines);
    }

    private static void pump(Process process, BlockingQueue<String> lines) {
      try (BufferedReader reader = process.inputReader(StandardCharsets.UTF_8)) {
        reader.lines().forEach(lines::add);
      } catch (IOException | UncheckedIOException e) {
        lines.add("the output broke off: " + e);
      }
    }

    void goOn() throws IOException {
      process.getOutputStream().write('\n');
      process.getOutputStream().flush();
    }

    String[] awaitLine(String start, long deadline) throws InterruptedException {
      String line = lines.poll(deadline - System.nanoTime(), TimeUnit.NANOSECONDS);
      assertThat(line).startsWith(start);
      return line.split(" ", -1);
    }
  }

  @ParameterizedTest
  @ValueSource(strings = {"0", "16M"})
  void processesMeetSoonAndNeedLittle(String shared) throws Exception {
    List<Rank> ranks = new ArrayList<>();
    try (TcpStoreServer server = new TcpStoreServer(0)) {
      long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(400 + RANKS);
      for (int number = 0; number < RANKS; number++) {
        ranks.add(Rank.start(number, server.port(), shared));
      }
      for (Rank rank : ranks) {
        rank.awaitLine("UP", deadline);
      }
      long start = System.nanoTime();
      for (Rank rank : ranks) {
        rank.goOn();
      }
      for (Rank rank : ranks) {
        rank.awaitLine("MET", deadline);
      }
      Duration met = Duration.ofNanos(System.nanoTime() - start);
      long sockets = 0;
      long memory = 0;
      for (Rank rank : ranks) {
        String[] has = rank.awaitLine("HAS", deadline);
        sockets += Long.parseLong(has[1]);
        memory += Long.parseLong(has[2]);
      }
      for (Rank rank : ranks) {
        rank.goOn();
      }
      for (Rank rank : ranks) {
        assertThat(rank.process().waitFor(60, TimeUnit.SECONDS)).isTrue();
        assertThat(rank.process().exitValue()).isZero();
      }
      System.out.println(
          RANKS
              + " processes that share "
              + shared
              + " met in "
              + met.toMillis()
              + " ms and have "
              + sockets
              + " sockets and "
              + (memory >> 20)
              + " MiB of their own");
      assertThat(met).isLessThan(SET_UP);
      // Besides those of the transport, each process has some sockets to the store.
      long near = 2L * (Integer.SIZE - Integer.numberOfLeadingZeros(RANKS - 1));
      assertThat(sockets).isLessThanOrEqualTo(RANKS * (near + 6));
    } finally {
      for (Rank rank : ranks) {
        rank.process().destroyForcibly();
        rank.process().waitFor(60, TimeUnit.SECONDS);
      }
    }
  }
}
