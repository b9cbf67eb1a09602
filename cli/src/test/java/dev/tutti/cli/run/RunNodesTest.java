package dev.tutti.cli.run;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.cli.process.Posix;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.util.List;
import org.junit.jupiter.api.Order;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Tests how the launchers of several nodes meet and end, each in a process of its own. */
@Order(1)
@Timeout(600)
class RunNodesTest {
  private static final String[] SLEEPING = {"sh", "-c", "exec sleep 600"};

  @RegisterExtension private final TestRuns runs = new TestRuns();

  @Test
  void runsTwoNodes() throws Exception {
    String warning =
        "tutti run: warning: 127.0.0.1 is a loopback address, which can be reached only"
            + " from the host of node 0; if the nodes run on several hosts, give all of them"
            + " --master-addr=HOST of node 0";
    String script = "echo $RANK of $WORLD_SIZE at $MASTER_ADDR:$MASTER_PORT";
    try (CommandProcess zero =
        runs.start("--nnodes=2", "--nproc=2", "--master-port=0", "sh", "-c", script)) {
      String port = portOf(zero);
      try (CommandProcess one =
          runs.start("--nnodes=2", "--node-rank=1", "--master-port=" + port, "sh", "-c", script)) {
        assertThat(zero.exitCode()).as(() -> zero.lines().toString()).isZero();
        assertThat(one.exitCode()).as(() -> one.lines().toString()).isZero();
        String place = " of 3 at 127.0.0.1:" + port;
        assertThat(withoutLog(zero.lines()))
            .contains(warning, "[rank0] 0" + place, "[rank1] 1" + place)
            .filteredOn(line -> !line.contains("waiting up to 10 min"))
            .hasSize(4);
        assertThat(zero.lines()).anyMatch(line -> line.contains("TUTTI_TOKEN is not set"));
        assertThat(one.lines())
            .filteredOn(line -> !line.contains("waiting up to 10 min"))
            .containsExactly(warning, "[rank2] 2" + place);
      }
    }
  }

  /** Removes what the store server logs. */
  private static List<String> withoutLog(List<String> lines) {
    return lines.stream()
        .filter(line -> line.startsWith("tutti run: ") || line.startsWith("[rank"))
        .toList();
  }

  /** Returns the port on which node 0 reports that its store listens. */
  private static String portOf(CommandProcess zero) throws InterruptedException {
    String listens = "tutti run: the store listens on port ";
    return zero.awaitLine(line -> line.startsWith(listens))
        .replaceAll("\\D+ port (\\d+); .*", "$1");
  }

  /** Asserts that all nodes end for the same reason, which each reports once. */
  private static void assertEndWith(String message, CommandProcess... nodes) throws Exception {
    for (CommandProcess node : nodes) {
      assertThat(node.exitCode()).as(() -> node.lines().toString()).isEqualTo(1);
      assertThat(node.lines())
          .containsOnlyOnce(message)
          .noneMatch(line -> line.contains("tutti-run"))
          .noneMatch(line -> line.contains("exits before"));
    }
  }

  @ParameterizedTest
  @CsvSource({"2, 3", "3, 2"})
  void nodesStartedForDifferentNumbersOfNodesAreToldSo(int ofZero, int ofOne) throws Exception {
    String message =
        "tutti run: node 0 was started with --nnodes=%d, node 1 with --nnodes=%d; give all nodes the same value"
            .formatted(ofZero, ofOne);
    try (CommandProcess zero = runs.start(SLEEPING, "--nnodes=" + ofZero, "--master-port=0")) {
      String port = "--master-port=" + portOf(zero);
      try (CommandProcess one = runs.start(SLEEPING, "--nnodes=" + ofOne, "--node-rank=1", port)) {
        assertEndWith(message, one, zero);
      }
    }
  }

  @Tag("full")
  @Test
  void aNodeThatGivesUpEndsTheOthers() throws Exception {
    // Node 1 must connect in this time, and then waits for node 2 until it is over.
    int seconds = 15;
    try (CommandProcess zero = runs.start(SLEEPING, "--nnodes=3", "--master-port=0")) {
      String port = portOf(zero);
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
        assertEndWith(message, one, zero);
      }
    }
  }

  @Tag("full")
  @Test
  void saysWhyItEndsBeforeItWaitsForOthersToLeave() throws Exception {
    try (CommandProcess zero = runs.start(SLEEPING, "--nnodes=3", "--master-port=0")) {
      String port = "--master-port=" + portOf(zero);
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

  @Test
  void saysThatItWaitsForNodeZero() throws Exception {
    try (Socket bound = new Socket()) {
      // No other process can take this port, and nobody listens on it.
      bound.bind(new InetSocketAddress(InetAddress.ofLiteral("127.0.0.1"), 0));
      int port = bound.getLocalPort();
      try (CommandProcess run =
          runs.start("--nnodes=2", "--node-rank=1", "--master-port=" + port, "true")) {
        assertThat(run.awaitLine(line -> line.contains("waiting up to")))
            .isEqualTo(
                "tutti run: waiting up to 10 min (--rdzv-timeout) for node 0 to serve the store at"
                    + " 127.0.0.1:"
                    + port);
      }
    }
  }
}
