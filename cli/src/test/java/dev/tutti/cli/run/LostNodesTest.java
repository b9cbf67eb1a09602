package dev.tutti.cli.run;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.cli.process.Posix;
import dev.tutti.shared.FreePorts;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Tests what nodes do if another is lost, gives up or ends early; each launcher has a process. */
@Tag("full")
@Timeout(600)
class LostNodesTest {
  private static final String[] SLEEPING = {"sh", "-c", "exec sleep 600"};

  @RegisterExtension private final TestRuns runs = new TestRuns();

  @TempDir private Path folder;
  private final List<CommandProcess> started = new ArrayList<>();
  private Path stop;

  @BeforeEach
  void choose() {
    stop = folder.resolve("stop");
  }

  @AfterEach
  void end() throws Exception {
    started.forEach(CommandProcess::close);
    for (CommandProcess each : started) {
      int _ = each.exitCode();
    }
  }

  /** Starts a node of two to four, with one rank. */
  private CommandProcess startNode(int node, String... place) throws Exception {
    List<String> options =
        new ArrayList<>(List.of("--nnodes=2:4", "--elastic", "--node-rank=" + node));
    options.addAll(List.of(place));
    started.add(
        runs.startRanks(
            ScaledRank.class, List.of(stop.toString()), options.toArray(String[]::new)));
    return started.getLast();
  }

  private void assertSuccess(CommandProcess... nodes) throws Exception {
    Files.createFile(stop);
    for (CommandProcess node : nodes) {
      assertThat(node.exitCode()).as(() -> node.lines().toString()).isZero();
      assertThat(node.lines()).anyMatch(line -> line.matches("\\[rank\\d+] END"));
    }
  }

  @Test
  void othersGoOnWhenANodeIsKilledAndAnotherTakesItsNumber() throws Exception {
    CommandProcess zero = startNode(0, "--master-port=0");
    String port = "--master-port=" + TestRuns.portOf(zero);
    CommandProcess one = startNode(1, port);
    ScaledRank.awaitSize(one, 2);
    CommandProcess two = startNode(2, port);
    ScaledRank.awaitSize(zero, 3);
    one.close();
    ScaledRank.awaitSize(zero, 2);
    CommandProcess again = startNode(1, port);
    ScaledRank.awaitSize(again, 3);
    ScaledRank.awaitSize(zero, 3);
    assertThat(zero.lines())
        .contains(
            "tutti run: node 1 is gone: its launcher has sent no heartbeat for 1 min; the job"
                + " continues with 2 nodes");
    assertSuccess(zero, two, again);
  }

  @ParameterizedTest
  @ValueSource(strings = {"tcp", "aeron", "aeron-cluster"})
  void anyNodeMayDieIfNoneServesTheStore(String scheme) throws Exception {
    String at = scheme + "://127.0.0.1:" + FreePorts.consecutive(5);
    List<String> serve = new ArrayList<>(List.of("store", "serve", "--at", at));
    String url = at;
    if (scheme.equals("aeron-cluster")) {
      serve.addAll(List.of("--member=0", "--data=" + folder.resolve("data")));
      url = at + "/job";
    }
    started.add(CommandProcess.start(serve.toArray(String[]::new)));
    started.getLast().await(lines -> lines.stream().anyMatch(line -> line.contains(at)));
    String place = "--rdzv-endpoint=" + url;
    CommandProcess zero = startNode(0, place);
    CommandProcess one = startNode(1, place);
    CommandProcess two = startNode(2, place);
    for (CommandProcess node : List.of(zero, one, two)) {
      ScaledRank.awaitSize(node, 3);
    }
    zero.close();
    ScaledRank.awaitSize(two, 2);
    assertSuccess(one, two);
  }

  @Test
  void theNodeThatServesTheStoreTakesTheJobWithIt() throws Exception {
    CommandProcess zero = startNode(0, "--master-port=0");
    CommandProcess one = startNode(1, "--master-port=" + TestRuns.portOf(zero));
    ScaledRank.awaitSize(one, 2);
    zero.close();
    assertThat(one.exitCode()).as(() -> one.lines().toString()).isEqualTo(1);
    assertThat(one.lines()).anyMatch(line -> line.contains("lost the store of the job"));
  }

  @Test
  void aNodeThatGivesUpEndsTheOthers() throws Exception {
    // Node 1 must connect in this time, and then waits for node 2 until it is over.
    int seconds = 15;
    try (CommandProcess zero = runs.start(SLEEPING, "--nnodes=3", "--master-port=0")) {
      String port = TestRuns.portOf(zero);
      String message =
          "tutti run: node 2 of 3 did not join at 127.0.0.1:"
              + port
              + " within "
              + seconds
              + " s (--rdzv-timeout of node 1); check that each was started with the same"
              + " --nnodes and its own --node-rank, and can reach that address";
      // Others must already be waiting, or node 1 finds that they do not come.
      zero.awaitLine(line -> line.contains("for nodes 1, 2 of 3"));
      try (CommandProcess one =
          runs.start(
              SLEEPING,
              "--nnodes=3",
              "--node-rank=1",
              "--master-port=" + port,
              "--rdzv-timeout=" + seconds + "s")) {
        assertThat(one.exitCode()).isEqualTo(1);
        TestRuns.assertEndWith(message, one, zero);
      }
    }
  }

  @Test
  void saysWhyItEndsBeforeItWaitsForOthersToLeave() throws Exception {
    try (CommandProcess zero = runs.start(SLEEPING, "--nnodes=3", "--master-port=0")) {
      String port = "--master-port=" + TestRuns.portOf(zero);
      // Node 1 says only once who is missing, and that must not be node 0.
      zero.awaitLine(line -> line.contains("for nodes 1, 2 of 3"));
      try (CommandProcess one = runs.start(SLEEPING, "--nnodes=3", "--node-rank=1", port)) {
        one.awaitLine(line -> line.contains("for node 2 of 3"));
        Posix.kill(one.pid(), Posix.SIGKILL);
        assertThat(one.exitCode()).isEqualTo(137);
      }
      String[] none = {"no-such-program"};
      try (CommandProcess two = runs.start(none, "--nnodes=3", "--node-rank=2", port)) {
        assertThat(two.exitCode()).isEqualTo(127);
        assertThat(two.lines()).endsWith("tutti run: no such program: 'no-such-program'");
      }
      assertThat(zero.exitCode()).isEqualTo(127);
      List<String> lines = zero.lines();
      String reason = "tutti run: node 2: no such program: 'no-such-program'";
      assertThat(lines).containsOnlyOnce(reason);
      assertThat(lines.subList(lines.indexOf(reason), lines.size()))
          .anyMatch(line -> line.contains("node 0 exits before node 1"));
    }
  }
}
