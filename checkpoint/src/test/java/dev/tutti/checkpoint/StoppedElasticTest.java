package dev.tutti.checkpoint;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.contracts.TestTier;
import dev.tutti.store.tcp.TcpStoreServer;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.net.InetAddress;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Order;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/**
 * Stops one of three processes of an elastic job in a save or a load, whose group has a deadline of
 * 30 minutes: the others go on once a collective would have failed.
 */
@Timeout(900)
@Order(1)
class StoppedElasticTest {
  private static final int SIZE = 3;
  private static final int STOPPED = 1;
  private static final int NEVER = -1;

  /** The text of a section is taken after a restore, then in each commit and in its save. */
  private static final int FIRST_SAVE = 2;

  @TempDir Path folder;

  private Process start(int rank, int port, long steps, int save, int load) throws IOException {
    List<String> command = new ArrayList<>();
    command.add(ProcessHandle.current().info().command().orElseThrow());
    command.addAll(List.of("-Xmx128m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"));
    command.addAll(List.of("-XX:-UsePerfData", "--enable-native-access=ALL-UNNAMED", "-cp"));
    command.add(ManagementFactory.getRuntimeMXBean().getClassPath());
    command.addAll(List.of(StoppedElasticMain.class.getName(), folder.toString(), "" + steps));
    command.addAll(
        List.of("" + (rank == STOPPED ? save : NEVER), "" + (rank == STOPPED ? load : NEVER)));
    ProcessBuilder builder = new ProcessBuilder(command).redirectErrorStream(true);
    builder.environment().put("RANK", Integer.toString(rank));
    builder.environment().put("WORLD_SIZE", Integer.toString(SIZE));
    builder.environment().put("MASTER_ADDR", "127.0.0.1");
    builder.environment().put("MASTER_PORT", Integer.toString(port));
    builder.environment().put("TORCHELASTIC_USE_AGENT_STORE", "True");
    builder.environment().put("TUTTI_BACKEND", "gloo");
    return builder.start();
  }

  /** Runs a job, and returns the last line of each rank, but for one that stops. */
  private List<String> run(long steps, int save, int load) throws Exception {
    List<Process> ranks = new ArrayList<>();
    List<String> ends = new ArrayList<>();
    try (TcpStoreServer server = new TcpStoreServer(InetAddress.getLoopbackAddress(), 0)) {
      for (int rank = 0; rank < SIZE; rank++) {
        ranks.add(start(rank, server.port(), steps, save, load));
      }
      for (int rank = 0; rank < SIZE; rank++) {
        boolean stops = rank == STOPPED && (save != NEVER || load != NEVER);
        List<String> lines = stops ? List.of() : ranks.get(rank).inputReader().lines().toList();
        ends.addAll(lines.isEmpty() ? lines : List.of(lines.getLast()));
      }
      return ends;
    } finally {
      for (Process rank : ranks) {
        rank.destroyForcibly();
        boolean _ = rank.waitFor(60, TimeUnit.SECONDS);
      }
    }
  }

  private static String end(int ranks, long steps) {
    return "END %d ranks, step %d: %s".formatted(ranks, steps, Sums.after(steps));
  }

  /** Where a rank stops. */
  enum Place {
    LAST_SAVE,
    SAVE_BESIDE_TRAINING,
    LOAD
  }

  static List<Place> places() {
    return TestTier.isFast() ? List.of(Place.LAST_SAVE) : List.of(Place.values());
  }

  @ParameterizedTest
  @MethodSource("places")
  void theOthersGoOn(Place place) throws Exception {
    switch (place) {
      case LAST_SAVE -> assertThat(run(1, FIRST_SAVE, NEVER)).containsExactly(end(2, 1), end(2, 1));
      case SAVE_BESIDE_TRAINING ->
          assertThat(run(5, FIRST_SAVE, NEVER)).containsExactly(end(2, 5), end(2, 5));
      case LOAD -> {
        assertThat(run(2, NEVER, NEVER)).containsExactly(end(3, 2), end(3, 2), end(3, 2));
        assertThat(run(4, NEVER, 0)).containsExactly(end(2, 4), end(2, 4));
      }
    }
  }
}
