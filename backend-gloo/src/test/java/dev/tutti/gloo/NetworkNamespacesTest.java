package dev.tutti.gloo;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Runs a group with two ranks on each of two hosts, which are network namespaces. */
@Timeout(900)
class NetworkNamespacesTest {
  private static final int SIZE = 4;
  private static final int PORT = 29_500;
  private static final int SECONDS = 400;
  private static final long LARGE_BYTES = 4L * (2 << 20);

  @TempDir Path directory;

  /** Runs all ranks until they exit and returns what each printed. */
  private List<List<String>> run(
      NetworkNamespaces hosts, Map<Integer, String> masters, String... arguments) throws Exception {
    List<Process> processes = new ArrayList<>();
    try {
      for (int rank = 0; rank < SIZE; rank++) {
        processes.add(start(hosts, rank, masters.getOrDefault(rank, hosts.address(0)), arguments));
      }
      long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(SECONDS);
      List<List<String>> outputs = new ArrayList<>();
      for (int rank = 0; rank < SIZE; rank++) {
        boolean ended =
            processes.get(rank).waitFor(deadline - System.nanoTime(), TimeUnit.NANOSECONDS);
        List<String> lines = Files.readAllLines(output(rank), StandardCharsets.UTF_8);
        assertThat(ended).as("rank %d ends: %s", rank, lines).isTrue();
        outputs.add(lines);
      }
      return outputs;
    } finally {
      for (Process process : processes) {
        process.destroyForcibly();
        process.waitFor(60, TimeUnit.SECONDS);
      }
    }
  }

  private Process start(NetworkNamespaces hosts, int rank, String master, String... arguments)
      throws IOException {
    List<String> command = new ArrayList<>();
    command.add(ProcessHandle.current().info().command().orElseThrow());
    command.addAll(
        List.of("-Xmx512m", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData", "-XX:+UseSerialGC"));
    command.addAll(List.of("--enable-native-access=ALL-UNNAMED", "-cp"));
    command.add(ManagementFactory.getRuntimeMXBean().getClassPath());
    command.addAll(List.of(HostsMain.class.getName(), directory.toString()));
    command.addAll(List.of(arguments));
    ProcessBuilder builder =
        new ProcessBuilder(hosts.inside(rank / 2, command))
            .redirectErrorStream(true)
            .redirectOutput(output(rank).toFile());
    builder.environment().keySet().removeIf(name -> name.startsWith("TUTTI_"));
    builder.environment().remove("GLOO_SOCKET_IFNAME");
    builder.environment().put("RANK", Integer.toString(rank));
    builder.environment().put("WORLD_SIZE", Integer.toString(SIZE));
    builder.environment().put("MASTER_ADDR", master);
    builder.environment().put("MASTER_PORT", Integer.toString(PORT));
    builder.environment().put("TUTTI_TIMEOUT", "200s");
    return builder.start();
  }

  private Path output(int rank) {
    return directory.resolve("rank" + rank + ".txt");
  }

  @Test
  @Tag("full")
  void everyOperationRunsBetweenTwoHostsOfTwoRanks() throws Exception {
    try (NetworkNamespaces hosts = NetworkNamespaces.create()) {
      List<List<String>> outputs = run(hosts, Map.of());
      for (int rank = 0; rank < SIZE; rank++) {
        int host = rank / 2;
        assertThat(outputs.get(rank))
            .as("rank %d", rank)
            .contains("LISTENS " + hosts.address(host) + " " + hosts.interfaceName(host))
            .contains("RUNS two levels: [0, 1] [2, 3]")
            .endsWith("OK");
        long sent = sent(outputs.get(rank));
        // With one level, a host would send 1.5 times the bytes of the tensor.
        assertThat(sent).as("sent by host %d", host).isBetween(LARGE_BYTES, LARGE_BYTES * 5 / 4);
      }
    }
  }

  @Test
  @Tag("full")
  void everyOperationIsRightThoughPacketsAreLost() throws Exception {
    try (NetworkNamespaces hosts = NetworkNamespaces.createLossy(0.01, 20_261_121)) {
      List<List<String>> outputs = run(hosts, Map.of(), "few");
      for (int rank = 0; rank < SIZE; rank++) {
        assertThat(outputs.get(rank))
            .as("rank %d", rank)
            .contains("RUNS two levels: [0, 1] [2, 3]")
            .endsWith("OK");
      }
      long lost = hosts.link().lost();
      long all = hosts.link().carried() + lost;
      assertThat(all).isGreaterThan(5000);
      assertThat(lost).isBetween(all / 200, all / 50);
    }
  }

  private static long sent(List<String> lines) {
    return lines.stream()
        .filter(line -> line.startsWith("SENT "))
        .mapToLong(line -> Long.parseLong(line.substring(5)))
        .findFirst()
        .orElseThrow();
  }

  @Test
  void loopbackIsRefusedBetweenHosts() throws Exception {
    try (NetworkNamespaces hosts = NetworkNamespaces.create()) {
      // The ranks on the store's host reach it through the loopback address, which is of no use to
      // the others.
      Map<Integer, String> masters = Map.of(0, "127.0.0.1", 1, "127.0.0.1");
      List<List<String>> outputs = run(hosts, masters);
      assertThat(outputs.get(0)).contains("LISTENS 127.0.0.1 lo");
      assertThat(outputs.get(2))
          .contains("LISTENS " + hosts.address(1) + " " + hosts.interfaceName(1));
      for (List<String> lines : outputs) {
        assertThat(lines)
            .anySatisfy(
                line ->
                    assertThat(line)
                        .startsWith("REFUSED ")
                        .contains("rank 0 listens at 127.0.0.1, a loopback address")
                        .contains("which rank 2 on another host cannot reach")
                        .contains("GLOO_SOCKET_IFNAME"));
      }
    }
  }
}
