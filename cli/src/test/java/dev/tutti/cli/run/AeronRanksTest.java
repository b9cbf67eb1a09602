package dev.tutti.cli.run;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.aeron.AeronStoreOptions;
import dev.tutti.aeron.AeronStoreServer;
import dev.tutti.shared.FreePorts;
import dev.tutti.store.JobToken;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Kills a rank on gloo inside an all-reduce; the ranks meet in a store over Aeron. */
@Timeout(600)
class AeronRanksTest {
  private static final int SIZE = 3;
  private static final int ELEMENTS = 1_000_000;

  @TempDir private Path folder;

  /** Starts the ranks, adds them to a list, and waits until they reduce. */
  private static void start(List<CommandProcess> ranks, Path directory, int port, boolean served)
      throws Exception {
    Map<String, String> environment = new TreeMap<>();
    environment.put("TUTTI_STORE", "aeron");
    environment.put("TUTTI_BACKEND", "gloo");
    environment.put("TUTTI_AERON_DIR", directory.toString());
    environment.put("TUTTI_TOKEN", "");
    environment.put("TORCHELASTIC_USE_AGENT_STORE", served ? "True" : "False");
    environment.put("MASTER_ADDR", "127.0.0.1");
    environment.put("MASTER_PORT", Integer.toString(port));
    environment.put("WORLD_SIZE", Integer.toString(SIZE));
    for (int rank = 0; rank < SIZE; rank++) {
      environment.put("RANK", Integer.toString(rank));
      ranks.add(
          CommandProcess.startProgram(
              environment, ReducingProgram.class, Integer.toString(ELEMENTS)));
    }
    for (CommandProcess rank : ranks) {
      rank.await(lines -> lines.contains("READY"));
    }
  }

  /** Kills a rank; the others must report that it is gone, long before their timeout. */
  private static List<CommandProcess> kill(List<CommandProcess> ranks, int victim)
      throws Exception {
    long start = System.nanoTime();
    ranks.get(victim).close();
    List<CommandProcess> others = new ArrayList<>(ranks);
    others.remove(victim);
    for (CommandProcess rank : others) {
      String said = rank.awaitLine(line -> line.startsWith("FAILED"));
      assertThat(System.nanoTime() - start).isLessThan(TimeUnit.MINUTES.toNanos(2));
      assertThat(said).startsWith("FAILED " + victim).contains("rank " + victim + " is gone");
    }
    for (CommandProcess rank : others) {
      rank.endInput();
      assertThat(rank.exitCode()).isZero();
    }
    return others;
  }

  @Test
  void allOthersNameTheKilledRankAndTheStoreGoesOn() throws Exception {
    List<CommandProcess> ranks = new ArrayList<>();
    try (AeronStoreServer server =
        new AeronStoreServer(
            AeronStoreOptions.of("127.0.0.1", 0).withToken(JobToken.NONE).withDirectory(folder))) {
      start(ranks, folder, server.port(), true);
      for (CommandProcess rank : kill(ranks, 1)) {
        assertThat(rank.lines()).anyMatch(line -> line.matches("STORE [12]"));
      }
    } finally {
      ranks.forEach(CommandProcess::close);
    }
  }

  @Test
  void whoServedTheStoreIsNamedAndItsLossIsTheReason() throws Exception {
    int port = FreePorts.one();
    List<CommandProcess> ranks = new ArrayList<>();
    try {
      start(ranks, folder, port, false);
      for (CommandProcess rank : kill(ranks, 0)) {
        assertThat(rank.lines())
            .anyMatch(
                line ->
                    line.startsWith("STORE store server at 127.0.0.1:" + port + " is gone:")
                        && line.endsWith("its keys are lost"));
      }
    } finally {
      ranks.forEach(CommandProcess::close);
    }
  }
}
