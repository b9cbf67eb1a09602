package dev.tutti.peer.libtorch;

import static dev.tutti.peer.libtorch.PeerGroupOfProcesses.LIMIT;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.api.parallel.Execution;
import org.junit.jupiter.api.parallel.ExecutionMode;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

@Execution(ExecutionMode.CONCURRENT)
class LibtorchPeerTest {
  private static final List<String> ROUNDED_TYPES =
      List.of("float32", "float64", "float16", "bfloat16");
  private static final List<String> EXACT_TYPES =
      List.of("int8", "uint8", "bool", "int32", "int64");
  private static final List<String> COMPLEX_TYPES = List.of("complex64", "complex128");

  @BeforeAll
  @Timeout(value = 20, unit = TimeUnit.MINUTES)
  static void loadsLibtorch() {
    assumeTrue(
        LibtorchClasspath.unsupportedReason().isEmpty(),
        () -> LibtorchClasspath.unsupportedReason().orElseThrow());
    PeerProcess.prepare();
  }

  @ParameterizedTest
  @ValueSource(ints = {2, 3})
  void everyOperationGivesTheExpectedValuesForEveryType(int size) {
    try (PeerGroupOfProcesses group = new PeerGroupOfProcesses(size)) {
      List<String> lines = new ArrayList<>();
      for (String type : ROUNDED_TYPES) {
        addReductions(lines, type, List.of("sum", "avg", "product", "min", "max"));
        addMoves(lines, type, size);
      }
      for (String type : EXACT_TYPES) {
        addReductions(lines, type, List.of("sum", "product", "min", "max", "band", "bor", "bxor"));
        addMoves(lines, type, size);
      }
      for (String type : COMPLEX_TYPES) {
        addReductions(lines, type, List.of("sum", "avg"));
        lines.add("broadcast " + type + " 5 root=1");
      }
      for (String type : List.of("float32", "float64", "int8", "uint8", "int32", "int64")) {
        lines.add("allreduce_sparse " + type + " sum 4 2 3");
      }
      lines.add("allreduce float32 sum 0");
      lines.add("allreduce float32 sum 1000003 seed=4");
      lines.add("broadcast bfloat16 17 root=1 data=fraction");
      lines.add("barrier");
      lines.add("monitored_barrier");
      group.expectAll(lines);
      group.leave();
    }
  }

  @Test
  void wantsOfLibtorchAreReportedOnEveryRank() {
    try (PeerGroupOfProcesses group = new PeerGroupOfProcesses(2, "--keep-going")) {
      Map.of(
              "allreduce int16 sum 4", "Invalid scalar type",
              "allreduce int32 avg 4", "can't be cast to the desired output type Int",
              "allreduce float32 band 4", "non-integral dtype",
              "allreduce complex64 product 4", "complex tensors",
              "allgather complex64 4", "Invalid scalar type",
              "reduce float32 sum 4 root=7", "invalid root rank",
              "frobnicate float32", "no such operation: frobnicate")
          .forEach(
              (line, message) ->
                  assertThat(group.each(rank -> line))
                      .hasSize(2)
                      .allSatisfy(
                          result -> {
                            assertThat(result.ok()).isFalse();
                            assertThat(result.message()).contains(message);
                          }));
      group.expectAll(List.of("allreduce float32 sum 10"));
    }
  }

  @Test
  void lateRoundingGivesAllRanksTheSameBits() {
    try (PeerGroupOfProcesses group = new PeerGroupOfProcesses(3, "--lazy")) {
      for (String type : ROUNDED_TYPES) {
        String line = "allreduce " + type + " sum 1001 data=fraction";
        List<PeerResult> results = group.each(rank -> line);
        assertThat(results).allMatch(PeerResult::ok);
        assertThat(results.stream().map(PeerResult::crc).distinct()).hasSize(1);
      }
    }
  }

  @Test
  void messagesArriveFromTheNamedAndFromAnyRank() {
    try (PeerGroupOfProcesses group = new PeerGroupOfProcesses(2)) {
      for (String type : List.of("float32", "float16", "int16", "bool", "complex128")) {
        List<PeerResult> forth =
            group.each(rank -> rank == 0 ? "send 1 7 " + type + " 4" : "recv 0 7 " + type + " 4");
        assertThat(forth.get(1).crc()).isEqualTo(crcOf("recv 0 7 " + type + " 4"));
        List<PeerResult> back =
            group.each(rank -> rank == 0 ? "recvany 5 " + type + " 4" : "send 0 5 " + type + " 4");
        assertThat(back.get(0).crc()).isEqualTo(crcOf("recv 1 5 " + type + " 4"));
        assertThat(back.get(0).attributes()).isEqualTo(Map.of("source", "1"));
      }
    }
  }

  @Test
  void subgroupsAndStartedOperationsRunBesideTheDefaultGroup() {
    try (PeerGroupOfProcesses group = new PeerGroupOfProcesses(3)) {
      List<PeerResult> made = group.each(rank -> "subgroup ranks=2,0 name=1 device=shared");
      assertThat(made.stream().map(result -> result.attributes().get("member")))
          .containsExactly("true", "false", "true");
      group.each(rank -> "allreduce int32 sum 4 async=all seed=1");
      group.each(rank -> "allgather int32 2 group=1 async=some");
      List<PeerResult> some = group.each(rank -> "wait some");
      String gathered = PeerData.crc(PeerOracle.expected("allgather int32 2", 0, 2));
      assertThat(some.stream().map(PeerResult::crc))
          .containsExactly(gathered, "00000000", gathered);
      List<PeerResult> all = group.each(rank -> "wait all");
      String summed = PeerData.crc(PeerOracle.expected("allreduce int32 sum 4 seed=1", 0, 3));
      assertThat(all.stream().map(PeerResult::crc)).containsOnly(summed);
      group.leave();
    }
  }

  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void storeOperationsReachBothServers(boolean legacy) {
    PeerArguments server = PeerArguments.tcpServer(0, 2).with("--no-group", "--keep-going");
    List<PeerProcess> loaded = PeerProcess.load(2);
    try (PeerProcess first = loaded.get(0);
        PeerProcess second = loaded.get(1)) {
      first.open(legacy ? server.with("--legacy") : server);
      second.open(PeerArguments.tcp(1, 2, first.awaitPort(LIMIT)).with("--no-group"));
      assertThat(reply(first, "store_set k v1")).isEmpty();
      assertThat(reply(second, "store_get k")).isEqualTo("v1");
      assertThat(reply(second, "store_append k +2")).isEmpty();
      assertThat(reply(second, "store_get k")).isEqualTo("v1+2");
      assertThat(reply(second, "store_add n 5")).isEqualTo("5");
      assertThat(reply(first, "store_add n -7")).isEqualTo("-2");
      assertThat(reply(second, "store_compare_set c - first")).isEqualTo("first");
      assertThat(reply(first, "store_compare_set c second third")).isEqualTo("first");
      assertThat(reply(second, "store_check k n")).isEqualTo("true");
      assertThat(reply(second, "store_check k missing")).isEqualTo("false");
      assertThat(reply(second, "store_list_keys")).isEqualTo("c,k,n");
      second.send("store_wait late");
      assertThat(reply(first, "store_set late yes")).isEmpty();
      assertThat(second.await(LIMIT).ok()).isTrue();
      assertThat(reply(second, "store_delete late")).isEqualTo("true");
      assertThat(first.run(LIMIT, "store_wait missing timeout=50").getFirst().message())
          .containsIgnoringCase("timeout");
      if (!legacy) {
        assertThat(reply(second, "store_queue_push q a")).isEmpty();
        assertThat(reply(second, "store_queue_len q")).isEqualTo("1");
        assertThat(reply(first, "store_queue_pop q")).isEqualTo("a");
      }
      assertThat(second.run(LIMIT, "close").getFirst().ok()).isTrue();
      assertThat(second.awaitExit(LIMIT)).isZero();
    }
  }

  @Test
  void aFileServesAsStore(@TempDir Path directory) {
    String file = directory.resolve("store").toString();
    List<PeerProcess> loaded = PeerProcess.load(2);
    try (PeerProcess zero = loaded.get(0);
        PeerProcess one = loaded.get(1)) {
      zero.open(PeerArguments.file(0, 2, file));
      one.open(PeerArguments.file(1, 2, file));
      zero.send("allreduce float32 sum 10");
      PeerResult result = one.run(LIMIT, "allreduce float32 sum 10").getFirst();
      assertThat(result.values()).containsExactly("-8.0", "6.0", "-2.0", "1.0");
      assertThat(zero.await(LIMIT)).isEqualTo(result);
    }
  }

  @Test
  void aStoreWaitsForItsWorkers() {
    PeerArguments server = PeerArguments.tcpServer(0, 2).with("--workers", "2", "--no-group");
    List<PeerProcess> loaded = PeerProcess.load(2);
    try (PeerProcess first = loaded.get(0);
        PeerProcess second = loaded.get(1)) {
      int port = first.open(server).awaitPort(LIMIT);
      assertThatThrownBy(() -> first.awaitReady(Duration.ofMillis(200)))
          .isInstanceOf(IllegalStateException.class)
          .hasMessageContaining("within PT0.2S");
      second.open(PeerArguments.tcp(1, 2, port).with("--workers", "2", "--no-group"));
      second.awaitReady(LIMIT);
      first.awaitReady(LIMIT);
      assertThat(reply(first, "store_num_keys")).isEqualTo("1");
      assertThat(reply(second, "store_list_keys")).isEqualTo("-");
    }
  }

  @Test
  void anErrorEndsThePeerWithStatus3() {
    try (PeerProcess peer = PeerProcess.start(PeerArguments.tcpServer(0, 1))) {
      List<PeerResult> results = peer.run(LIMIT, "barrier", "allreduce float33 sum 4", "barrier");
      assertThat(results).extracting(PeerResult::ok).containsExactly(true, false);
      assertThat(results.get(1).message()).contains("float33");
      assertThat(peer.awaitExit(LIMIT)).isEqualTo(3);
      assertThatThrownBy(() -> peer.await(LIMIT))
          .isInstanceOf(IllegalStateException.class)
          .hasMessageContaining("the peer ended")
          .hasMessageContaining("float33");
    }
  }

  @Test
  void aMissingPeerIsAnErrorAndNoHang() {
    PeerArguments alone = PeerArguments.tcpServer(0, 2).with("--timeout-ms", "300");
    try (PeerProcess peer = PeerProcess.start(alone)) {
      PeerResult result = peer.await(LIMIT);
      assertThat(result.ok()).isFalse();
      assertThat(result.line()).isZero();
      assertThat(peer.awaitExit(LIMIT)).isEqualTo(3);
    }
  }

  private static void addReductions(List<String> lines, String type, List<String> reduceOps) {
    for (String op : reduceOps) {
      lines.add("allreduce " + type + " " + op + " 17");
      lines.add("allreduce_coalesced " + type + " " + op + " 3,2,4 seed=1");
      lines.add("reduce " + type + " " + op + " 13 root=1");
      lines.add("reduce_scatter " + type + " " + op + " 5");
      lines.add("reduce_scatter_base " + type + " " + op + " 5 seed=2");
      lines.add("reduce_scatter_tensor_coalesced " + type + " " + op + " 3,2");
    }
  }

  private static void addMoves(List<String> lines, String type, int size) {
    lines.add("broadcast " + type + " 5 root=1");
    lines.add("allgather " + type + " 3");
    lines.add("allgather_base " + type + " 3 seed=3");
    lines.add("allgather_into_tensor_coalesced " + type + " 2,3");
    lines.add("gather " + type + " 3 root=1");
    lines.add("scatter " + type + " 3 root=1");
    lines.add("alltoall_base " + type + " 3");
    lines.add("alltoall_base " + type + " splits=" + (size == 2 ? "1,2;3,0" : "1,2,0;3,0,1;2,2,4"));
  }

  private static String crcOf(String line) {
    return PeerData.crc(PeerOracle.expected(line, 0, 2));
  }

  private static String reply(PeerProcess peer, String line) {
    PeerResult result = peer.run(LIMIT, line).getFirst();
    assertThat(result.ok()).as("%s: %s", line, result).isTrue();
    return String.join(" ", result.values());
  }
}
