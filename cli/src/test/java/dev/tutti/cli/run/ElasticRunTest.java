package dev.tutti.cli.run;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Order;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.extension.RegisterExtension;

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

  private static String portOf(CommandProcess node) throws Exception {
    String start = "tutti run: the store listens on port ";
    return node.awaitLine(line -> line.startsWith(start)).substring(start.length()).split(";")[0];
  }

  @Test
  void aRankOfAnotherNodeIsReplacedThere() throws Exception {
    try (CommandProcess first = startNode(0, 1, "0");
        CommandProcess second = startNode(1, 2, portOf(first))) {
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
}
