package dev.tutti.cli.run;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.cli.process.OwnJava;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Runs {@code tutti run --nnodes} on several hosts, each with two ranks. */
@Tag("full")
@Timeout(600)
class SeveralHostsTest {
  private static final int LOCAL = 2;
  private static final int PORT = 29500;
  private static final int CLUSTER_PORT = 29600;

  @TempDir private Path folder;

  @ParameterizedTest
  @CsvSource({"tcp, 2", "aeron, 3", "cluster, 3"})
  void allRanksGetTheSumAndEnd(String store, int count) throws Exception {
    List<CommandProcess> started = new ArrayList<>();
    try (NamespaceHosts hosts = NamespaceHosts.create(count, folder)) {
      try {
        List<CommandProcess> nodes = start(hosts, folder, store, -1, started);
        for (int host = 0; host < count; host++) {
          CommandProcess node = nodes.get(host);
          assertThat(node.exitCode()).as("node %d: %s", host, node.lines()).isZero();
          assertSums(node, host, count);
        }
      } finally {
        end(started);
      }
    }
  }

  @ParameterizedTest
  @CsvSource({"tcp, 2", "tcp, 3", "aeron, 2", "aeron, 3", "cluster, 3"})
  void allHostsNameTheRankThatWasKilled(String store, int count) throws Exception {
    int victim = LOCAL; // the first rank of the second host
    List<CommandProcess> started = new ArrayList<>();
    try (NamespaceHosts hosts = NamespaceHosts.create(count, folder)) {
      try {
        List<CommandProcess> nodes = start(hosts, folder, store, victim, started);
        for (int host = 0; host < count; host++) {
          CommandProcess node = nodes.get(host);
          assertThat(node.exitCode()).as("node %d: %s", host, node.lines()).isEqualTo(128 + 9);
          assertSums(node, host, count);
          assertThat(said(node, "FAILED").map(line -> line.replaceAll("(FAILED \\d+) .*", "$1")))
              .as("node %d: %s", host, node.lines())
              .containsExactlyInAnyOrderElementsOf(
                  ranks(host)
                      .filter(rank -> rank != victim)
                      .mapToObj(rank -> "[rank%d] FAILED %d".formatted(rank, victim))
                      .toList());
        }
        assertThat(nodes.get(1).lines())
            .anyMatch(line -> line.contains("rank " + victim) && line.contains("SIGKILL"));
      } finally {
        end(started);
      }
    }
  }

  @Test
  void aLinkThatIsCutBetweenTwoHostsIsNamed() throws Exception {
    List<CommandProcess> nodes = new ArrayList<>();
    List<String> program = OwnJava.command();
    program.add(EndlessRank.class.getName());
    try (NamespaceHosts hosts = NamespaceHosts.create(3, folder)) {
      try {
        for (int host = 0; host < hosts.count(); host++) {
          List<String> arguments = new ArrayList<>(List.of("run", "--nproc", "1"));
          arguments.addAll(List.of("--nnodes", "3", "--node-rank", "" + host));
          arguments.addAll(List.of("--master-addr", hosts.name(0), "--master-port", "" + PORT));
          arguments.add("--");
          arguments.addAll(program);
          Map<String, String> settings = Map.of("TUTTI_BACKEND", "gloo", "TUTTI_TIMEOUT", "20s");
          nodes.add(CommandProcess.startInside(hosts.inside(host), settings, arguments));
        }
        for (CommandProcess node : nodes) {
          node.awaitLine(line -> line.contains("pid "));
        }
        hosts.cut(1, 2);
        for (CommandProcess node : nodes) {
          assertThat(node.exitCode()).as("%s", node.lines()).isEqualTo(1);
          assertThat(node.lines())
              .anyMatch(
                  line ->
                      line.contains(
                          "all ranks have called it by now, but ranks 1 and 2 do not reach each"
                              + " other"));
        }
      } finally {
        end(nodes);
      }
    }
  }

  /**
   * Checks that all elements are right on each rank of a host, and that most bytes came over the
   * wire.
   */
  private static void assertSums(CommandProcess node, int host, int count) {
    assertThat(said(node, "SUM"))
        .containsExactlyInAnyOrderElementsOf(
            ranks(host)
                .mapToObj(rank -> "[rank%d] SUM of %d, 0 wrong".formatted(rank, LOCAL * count))
                .toList());
    assertThat(said(node, "RECEIVED").map(line -> Long.parseLong(line.replaceAll(".* ", ""))))
        .hasSize(LOCAL)
        .allSatisfy(
            bytes -> assertThat(bytes).isGreaterThan(SummingProgram.ELEMENTS * Integer.BYTES / 2L));
  }

  private static IntStream ranks(int host) {
    return IntStream.range(host * LOCAL, (host + 1) * LOCAL);
  }

  private static Stream<String> said(CommandProcess node, String word) {
    return node.lines().stream().filter(line -> line.matches("\\[rank\\d+] " + word + " .*"));
  }

  /** Starts the job, and the cluster if it needs one, and adds all processes to a list. */
  private List<CommandProcess> start(
      NamespaceHosts hosts, Path own, String store, int victim, List<CommandProcess> started)
      throws Exception {
    boolean isCluster = store.equals("cluster");
    String url = isCluster ? startCluster(hosts, own, started) + "/job" : "env://";
    List<String> program = OwnJava.command();
    program.addAll(List.of(SummingProgram.class.getName(), url, Integer.toString(victim)));
    List<CommandProcess> nodes = new ArrayList<>();
    for (int host = 0; host < hosts.count(); host++) {
      List<String> arguments = new ArrayList<>(List.of("run", "--nproc", "" + LOCAL));
      arguments.addAll(List.of("--nnodes", "" + hosts.count(), "--node-rank", "" + host));
      arguments.addAll(List.of("--master-addr", hosts.name(0), "--master-port", "" + PORT, "--"));
      arguments.addAll(program);
      nodes.add(
          CommandProcess.startInside(
              hosts.inside(host),
              Map.of("TUTTI_STORE", isCluster ? "tcp" : store, "TUTTI_BACKEND", "gloo"),
              arguments));
      started.add(nodes.getLast());
    }
    return nodes;
  }

  private String startCluster(NamespaceHosts hosts, Path own, List<CommandProcess> started)
      throws Exception {
    String url =
        IntStream.range(0, hosts.count())
            .mapToObj(host -> hosts.name(host) + ":" + CLUSTER_PORT)
            .collect(Collectors.joining(",", "aeron-cluster://", ""));
    for (int host = 0; host < hosts.count(); host++) {
      started.add(
          CommandProcess.startInside(
              hosts.inside(host),
              Map.of(),
              List.of(
                  "store",
                  "serve",
                  "--at",
                  url,
                  "--member",
                  "" + host,
                  "--data",
                  own.resolve("member" + host).toString())));
    }
    return url;
  }

  /** Kills the processes that are still running, and waits for their end. */
  private static void end(List<CommandProcess> processes) throws InterruptedException {
    processes.forEach(CommandProcess::close);
    for (CommandProcess process : processes) {
      process.exitCode();
    }
  }
}
