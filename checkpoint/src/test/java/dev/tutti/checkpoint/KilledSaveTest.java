package dev.tutti.checkpoint;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.contracts.TestTier;
import dev.tutti.store.tcp.TcpStoreServer;
import java.io.BufferedReader;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.net.InetAddress;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.locks.LockSupport;
import org.junit.jupiter.api.Order;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/**
 * Kills one or all ranks of a job at random moments of saves, again and again in one folder: what
 * was awaited is loaded, and survivors end.
 */
@Order(1)
@Timeout(3600)
class KilledSaveTest {
  private static final int KILLS = Integer.getInteger("tutti.kills", TestTier.isFast() ? 3 : 30);
  private static final long SEED = Long.getLong("tutti.killSeed", 1);
  private static final int LONGEST_MICROS = 20_000;

  @TempDir Path folder;

  /** A rank that runs, and what it has said. */
  private record Rank(Process process, BufferedReader output) {
    static Rank start(int rank, int ranks, int port, Path folder) throws IOException {
      ProcessBuilder builder =
          new ProcessBuilder(
              ProcessHandle.current().info().command().orElseThrow(),
              "-Xmx128m",
              "-XX:TieredStopAtLevel=1",
              "-XX:+UseSerialGC",
              "-XX:-UsePerfData",
              "--enable-native-access=ALL-UNNAMED",
              "-cp",
              ManagementFactory.getRuntimeMXBean().getClassPath(),
              SavingMain.class.getName(),
              folder.toString());
      builder.redirectError(ProcessBuilder.Redirect.DISCARD);
      builder.environment().put("RANK", Integer.toString(rank));
      builder.environment().put("WORLD_SIZE", Integer.toString(ranks));
      builder.environment().put("MASTER_ADDR", "127.0.0.1");
      builder.environment().put("MASTER_PORT", Integer.toString(port));
      builder.environment().put("TORCHELASTIC_USE_AGENT_STORE", "True");
      builder.environment().put("TUTTI_BACKEND", "gloo");
      builder.environment().put("TUTTI_X_GLOO_SPIN", "0.02ms");
      Process process = builder.start();
      return new Rank(process, process.inputReader());
    }

    /** Returns the number of the next line that starts with a word. */
    long await(String word) throws IOException {
      List<String> others = new ArrayList<>();
      for (String line = output.readLine(); line != null; line = output.readLine()) {
        if (line.startsWith(word + " ")) {
          return Long.parseLong(line.substring(word.length() + 1));
        }
        others.add(line);
      }
      throw new AssertionError("no line with '" + word + "' after " + others);
    }

    /** Returns the last step that was awaited, and what failed, of what it says until it ends. */
    End end(long before) throws IOException, InterruptedException {
      long last = before;
      String failure = "";
      for (String line = output.readLine(); line != null; line = output.readLine()) {
        if (line.startsWith("awaited ")) {
          last = Long.parseLong(line.substring("awaited ".length()));
        }
        assertThat(line).doesNotStartWith("wrong");
        failure += line.startsWith("failed: ") ? line : "";
      }
      process.waitFor();
      return new End(last, failure);
    }
  }

  /** How a rank ended. */
  private record End(long awaited, String failure) {}

  @Test
  void whatWasAwaitedIsLoadedAfterEachKill() throws Exception {
    Random random = new Random(SEED);
    long awaited = -1;
    for (int kill = 0; kill < KILLS; kill++) {
      awaited = round(random, awaited);
    }
    assertThat(awaited).isGreaterThanOrEqualTo(KILLS - 1);
  }

  private long round(Random random, long before) throws Exception {
    int ranks = 1 + random.nextInt(3);
    boolean all = random.nextBoolean();
    int victim = random.nextInt(ranks);
    List<Rank> started = new ArrayList<>();
    try (TcpStoreServer server = new TcpStoreServer(InetAddress.getLoopbackAddress(), 0)) {
      for (int rank = 0; rank < ranks; rank++) {
        started.add(Rank.start(rank, ranks, server.port(), folder));
      }
      for (Rank rank : started) {
        assertThat(rank.await("loaded")).isGreaterThanOrEqualTo(before);
      }
      long awaited = started.get(victim).await("awaited");
      LockSupport.parkNanos(1000L * random.nextInt(LONGEST_MICROS));
      for (Rank rank : all ? started : List.of(started.get(victim))) {
        rank.process.toHandle().destroyForcibly();
      }
      for (Rank rank : started) {
        End end = rank.end(awaited);
        awaited = Math.max(awaited, end.awaited);
        // Where all are killed, some end before their turn, since they miss the others.
        assertThat(rank.process.exitValue()).isIn(137, 1);
        if (!all && started.indexOf(rank) != victim) {
          assertThat(rank.process.exitValue()).isEqualTo(1);
          assertThat(end.failure)
              .startsWith("failed: saving step ")
              .contains("first failing rank " + victim)
              .endsWith("; the checkpoints in " + folder + " remain, so start the job again");
        }
      }
      return awaited;
    } finally {
      started.forEach(rank -> rank.process.destroyForcibly());
    }
  }
}
