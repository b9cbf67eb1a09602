package dev.tutti.checkpoint;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.Tensor;
import dev.tutti.contracts.TestTier;
import dev.tutti.fake.ThreadedWorld;
import dev.tutti.gradients.optimizer.ShardedOptimizer;
import dev.tutti.store.tcp.TcpStoreServer;
import java.io.BufferedReader;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.net.InetAddress;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Order;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * Kills one of three processes of an elastic job at random moments and starts another, again and
 * again: in the end each step was done once.
 */
@Order(1)
@Timeout(3600)
class KilledElasticTest {
  private static final int KILLS = Integer.getInteger("tutti.kills", TestTier.isFast() ? 2 : 20);
  private static final long SEED = Long.getLong("tutti.killSeed", 1);
  private static final int SIZE = 3;
  private static final int MOST_STEPS = 8;

  @TempDir Path folder;

  /** A rank that runs, and what it says. */
  private record Rank(Process process, BufferedReader output) {
    /** Reads lines until one contains a text, and returns it. */
    String await(String text) throws IOException {
      List<String> others = new ArrayList<>();
      for (String line = output.readLine(); line != null; line = output.readLine()) {
        if (line.contains(text)) {
          return line;
        }
        others.add(line);
      }
      throw new AssertionError("no line with " + text + " after " + others);
    }
  }

  private Rank start(int rank, int port, List<String> arguments) throws IOException {
    List<String> command = new ArrayList<>();
    command.add(ProcessHandle.current().info().command().orElseThrow());
    command.addAll(List.of("-Xmx128m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"));
    command.addAll(List.of("-XX:-UsePerfData", "--enable-native-access=ALL-UNNAMED", "-cp"));
    command.add(ManagementFactory.getRuntimeMXBean().getClassPath());
    command.addAll(List.of(ElasticMain.class.getName(), folder.resolve("stop").toString()));
    command.add(rank < 0 ? "join" : "init");
    command.addAll(arguments);
    ProcessBuilder builder = new ProcessBuilder(command).redirectErrorStream(true);
    if (rank >= 0) {
      builder.environment().put("RANK", Integer.toString(rank));
      builder.environment().put("WORLD_SIZE", Integer.toString(SIZE));
    }
    builder.environment().put("MASTER_ADDR", "127.0.0.1");
    builder.environment().put("MASTER_PORT", Integer.toString(port));
    builder.environment().put("TORCHELASTIC_USE_AGENT_STORE", "True");
    builder.environment().put("TUTTI_BACKEND", "gloo");
    builder.environment().put("TUTTI_TIMEOUT", "200s");
    Process process = builder.start();
    return new Rank(process, process.inputReader());
  }

  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void eachStepIsDoneOnceHoweverOftenRanksAreReplaced(boolean hasParts) throws Exception {
    List<String> arguments =
        hasParts ? List.of(folder.resolve("checkpoints").toString()) : List.of();
    Random random = new Random(SEED);
    List<Rank> ranks = new ArrayList<>();
    try (TcpStoreServer server = new TcpStoreServer(InetAddress.getLoopbackAddress(), 0)) {
      for (int rank = 0; rank < SIZE; rank++) {
        ranks.add(start(rank, server.port(), arguments));
      }
      for (int kill = 0; kill < KILLS; kill++) {
        awaitSteps(ranks, random.nextInt(MOST_STEPS));
        Rank killed = ranks.remove(random.nextInt(SIZE));
        killed.process.destroyForcibly();
        if (random.nextBoolean()) {
          for (Rank rank : ranks) {
            String _ = rank.await("RANKS 2 ");
          }
        }
        ranks.add(start(-1, server.port(), arguments));
      }
      awaitSteps(ranks, 1);
      Files.createFile(folder.resolve("stop"));
      for (Rank rank : ranks) {
        check(rank.await("END "), hasParts);
        assertThat(rank.process.waitFor()).isZero();
      }
    } finally {
      for (Rank rank : ranks) {
        rank.process.destroyForcibly();
        boolean _ = rank.process.waitFor(60, TimeUnit.SECONDS);
      }
    }
  }

  private static void awaitSteps(List<Rank> ranks, int steps) throws IOException {
    for (Rank rank : ranks) {
      for (int step = 0; step <= steps; step++) {
        String _ = rank.await("RANKS 3 ");
      }
    }
  }

  private static void check(String line, boolean hasParts) throws Exception {
    String[] parts = line.split(" ", 3);
    long steps = Long.parseLong(parts[1]);
    String expected = Sums.after(steps).toString();
    assertThat(parts[2]).isEqualTo(hasParts ? expected + undisturbed(steps) : expected);
  }

  private static String undisturbed(long steps) throws Exception {
    List<Tensor> parameters = ElasticMain.parameters();
    ThreadedWorld.run(
        1,
        group -> {
          try (ShardedOptimizer optimizer = ElasticMain.optimizer(group, parameters)) {
            for (long step = 0; step < steps; step++) {
              ElasticMain.step(optimizer, step);
            }
          }
        });
    return ElasticMain.text(parameters);
  }
}
