package dev.tutti.cli.run;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.cli.process.Posix;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Order;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.api.io.TempDir;

/** Tests that ranks are replaced while the others continue. */
@Timeout(600)
@Order(1)
class ElasticRunTest {
  @RegisterExtension private final TestRuns runs = new TestRuns();

  /** Starts one of two nodes, which reach each other at a port of this host. */
  private CommandProcess startNode(int node, int ranks, String port) throws Exception {
    return runs.startRanks(
        ElasticRank.class,
        "--nnodes=2",
        "--node-rank=" + node,
        "--nproc=" + ranks,
        "--master-port=" + port,
        "--elastic",
        "--max-restarts=1");
  }

  @Test
  void aRankOfAnotherNodeIsReplacedThere() throws Exception {
    try (CommandProcess first = startNode(0, 1, "0");
        CommandProcess second = startNode(1, 2, TestRuns.portOf(first))) {
      assertThat(first.exitCode()).as(() -> first.lines().toString()).isZero();
      assertThat(second.exitCode()).as(() -> second.lines().toString()).isZero();
      assertThat(first.lines())
          .contains("[rank0] END size 3 right true")
          .noneMatch(line -> line.contains("joins in its place"));
      assertThat(second.lines())
          .contains("[rank1] END size 3 right true", "[rank2] END size 3 right true")
          .anyMatch(line -> line.endsWith("joins in its place, restart 1 of 1"));
    }
  }

  @Test
  void aRankIsReplacedWhileTheOthersContinue() throws Exception {
    try (CommandProcess run =
        runs.startRanks(ElasticRank.class, "--nproc=3", "--elastic", "--max-restarts=1")) {
      assertThat(run.exitCode()).as(() -> run.lines().toString()).isZero();
      for (int rank = 0; rank < 3; rank++) {
        assertThat(run.lines()).contains("[rank%d] END size 3 right true".formatted(rank));
      }
      assertThat(run.lines())
          .anyMatch(line -> line.endsWith("joins in its place, restart 1 of 1"))
          .noneMatch(line -> line.contains("restarting all ranks"));
    }
  }

  private CommandProcess startMoving(Path stop, int node, String port) throws Exception {
    return runs.startRanks(
        ScaledRank.class,
        List.of(stop.toString()),
        "--nnodes=2:4",
        "--node-rank=" + node,
        "--master-port=" + port,
        "--elastic");
  }

  @Test
  void aNodeLeavesAndAnotherJoins(@TempDir Path folder) throws Exception {
    Path stop = folder.resolve("stop");
    try (CommandProcess zero = startMoving(stop, 0, "0");
        CommandProcess one = startMoving(stop, 1, TestRuns.portOf(zero))) {
      ScaledRank.awaitSize(zero, 2);
      Posix.kill(one.pid(), Posix.SIGTERM);
      assertThat(one.exitCode()).isEqualTo(143);
      ScaledRank.awaitSize(zero, 1);
      assertThat(zero.lines())
          .anyMatch(line -> line.startsWith("tutti run: node 1 is gone: stopped by SIGTERM; 1 of"));
      try (CommandProcess two = startMoving(stop, 2, TestRuns.portOf(zero))) {
        ScaledRank.awaitSize(two, 2);
        ScaledRank.awaitSize(zero, 2);
        assertThat(zero.lines()).contains("tutti run: node 2 joins with 1 rank");
        Files.createFile(stop);
        assertThat(zero.exitCode()).as(() -> zero.lines().toString()).isZero();
        assertThat(two.exitCode()).as(() -> two.lines().toString()).isZero();
      }
    }
  }
}
