package dev.tutti.cli.run;

import static org.assertj.core.api.Assertions.assertThat;

import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.util.List;
import org.junit.jupiter.api.Order;
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
      String port = TestRuns.portOf(zero);
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

  @ParameterizedTest
  @CsvSource({"2, 3", "3, 2"})
  void nodesStartedForDifferentNumbersOfNodesAreToldSo(int ofZero, int ofOne) throws Exception {
    String message =
        "tutti run: node 0 was started with --nnodes=%d, node 1 with --nnodes=%d; give all nodes the same value"
            .formatted(ofZero, ofOne);
    try (CommandProcess zero = runs.start(SLEEPING, "--nnodes=" + ofZero, "--master-port=0")) {
      String port = "--master-port=" + TestRuns.portOf(zero);
      try (CommandProcess one = runs.start(SLEEPING, "--nnodes=" + ofOne, "--node-rank=1", port)) {
        TestRuns.assertEndWith(message, one, zero);
      }
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
