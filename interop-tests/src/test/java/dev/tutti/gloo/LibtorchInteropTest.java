package dev.tutti.gloo;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import dev.tutti.gloo.MixedWorld.Host;
import dev.tutti.peer.libtorch.LibtorchClasspath;
import dev.tutti.peer.libtorch.PeerData;
import dev.tutti.peer.libtorch.PeerOracle;
import dev.tutti.peer.libtorch.PeerProcess;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.stream.LongStream;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.parallel.Execution;
import org.junit.jupiter.api.parallel.ExecutionMode;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Tests groups in which some ranks are libtorch 2.10; libtorch must not notice. */
@Execution(ExecutionMode.CONCURRENT)
@Timeout(value = 20, unit = TimeUnit.MINUTES)
class LibtorchInteropTest {
  private static final List<String> FLOATS = List.of("float32", "float64", "float16", "bfloat16");
  private static final List<String> INTEGERS = List.of("int8", "uint8", "int32", "int64");

  @BeforeAll
  @Timeout(value = 20, unit = TimeUnit.MINUTES)
  static void loadsLibtorch() {
    assumeTrue(
        LibtorchClasspath.unsupportedReason().isEmpty(),
        () -> LibtorchClasspath.unsupportedReason().orElseThrow());
    PeerProcess.prepare();
  }

  private static void addReductions(List<String> lines, String type, int size, String... ops) {
    for (String op : ops) {
      lines.add("allreduce " + type + " " + op + " 17");
      lines.add("reduce " + type + " " + op + " 6 root=" + (size - 1));
      lines.add("reduce_scatter " + type + " " + op + " 3");
      lines.add("reduce_scatter_base " + type + " " + op + " 3");
    }
  }

  private static void addMoves(List<String> lines, String type, int size) {
    for (int root = 0; root < size; root++) {
      lines.add("broadcast " + type + " 17 root=" + root);
    }
    lines.add("allgather " + type + " 5");
    lines.add("allgather_base " + type + " 7");
    lines.add("allgather_into_tensor_coalesced " + type + " 3,1");
    lines.add("gather " + type + " 5 root=" + (size - 1));
    lines.add("scatter " + type + " 5 root=" + (size - 1));
    lines.add("alltoall_base " + type + " 3");
  }

  private static void addSizes(List<String> lines, int size) {
    for (long count : LongStream.of(0, 1, 3, size - 1, size, 1_000_003).distinct().toArray()) {
      lines.add("allreduce float32 sum " + count);
      lines.add("broadcast float32 " + count + " root=" + (size - 1));
      lines.add("reduce float32 sum " + count + " root=0");
      lines.add("allgather float32 " + count);
      lines.add("allgather_base int8 " + count);
      lines.add("gather float32 " + count + " root=0");
      lines.add("scatter float32 " + count + " root=" + (size - 1));
      lines.add("alltoall_base float32 " + count);
    }
    // More than two segments per rank, for which the ring of reduce does more than it needs to.
    lines.add("reduce float32 sum 2600000 root=1");
    lines.add("allreduce float64 sum 1300007");
    lines.add("allreduce_coalesced float32 sum 3,0,5");
    lines.add("allreduce_sparse float32 sum 7 3 5");
    lines.add("allreduce_sparse int64 sum 50 1 20");
    lines.add("allreduce_sparse float64 sum 4 2 0");
    StringBuilder splits = new StringBuilder();
    for (int from = 0; from < size; from++) {
      splits.append(from == 0 ? "" : ";");
      for (int to = 0; to < size; to++) {
        splits.append(to == 0 ? "" : ",").append((from + 2 * to) % 4);
      }
    }
    lines.add("alltoall_base float32 splits=" + splits);
    lines.add("barrier");
    lines.add("monitored_barrier");
    lines.add("allreduce int32 sum 5 seed=3");
  }

  private static List<String> lines(int size) {
    List<String> lines = new ArrayList<>();
    for (String type : FLOATS) {
      addReductions(lines, type, size, "sum", "avg", "product", "min", "max");
      addMoves(lines, type, size);
    }
    for (String type : INTEGERS) {
      addReductions(lines, type, size, "sum", "product", "min", "max", "band", "bor", "bxor");
      addMoves(lines, type, size);
    }
    // libtorch adds bools as bytes and leaves the number of trues; Tutti leaves a bool.
    addReductions(lines, "bool", size, "product", "min", "max", "band", "bor", "bxor");
    addMoves(lines, "bool", size);
    // libtorch divides some complex numbers and multiplies others by a rounded 1/N, depending on
    // where its vectors fall.
    String exact = Integer.bitCount(size) == 1 ? "avg" : "sum";
    for (String type : List.of("complex64", "complex128")) {
      lines.add("allreduce " + type + " sum 17");
      lines.add("reduce " + type + " " + exact + " 6 root=0");
      lines.add("broadcast " + type + " 5 root=0");
    }
    addSizes(lines, size);
    return lines;
  }

  /**
   * Returns a subset in which each size, host and mode occurs, or the worlds of {@code
   * tutti.worlds}.
   */
  static List<Arguments> worlds() {
    List<Arguments> worlds = new ArrayList<>();
    String which = System.getProperty("tutti.worlds");
    if (which == null) {
      worlds.add(Arguments.of("TL", Host.TUTTI, false));
      worlds.add(Arguments.of("LT", Host.LIBUV, false));
      worlds.add(Arguments.of("LT", Host.TUTTI, true));
      worlds.add(Arguments.of("TL", Host.LEGACY, true));
      worlds.add(Arguments.of("TLT", Host.LIBUV, false));
      worlds.add(Arguments.of("LTL", Host.TUTTI, false));
      worlds.add(Arguments.of("LTLT", Host.TUTTI, false));
      worlds.add(Arguments.of("TLLT", Host.LIBUV, true));
      worlds.add(Arguments.of("TLTTL", Host.LEGACY, false));
      worlds.add(Arguments.of("LTLT", Host.FILE, false));
      return worlds;
    }
    String all = "TL,LT,TLT,LTL,TLLT,LTLT,TLTTL,LTTLT";
    for (String ranks : (which.equals("all") ? all : which).split(",")) {
      for (Host host : Host.values()) {
        worlds.add(Arguments.of(ranks, host, false));
        worlds.add(Arguments.of(ranks, host, true));
      }
    }
    return worlds;
  }

  @ParameterizedTest
  @MethodSource("worlds")
  void everyOperationGivesTheExpectedResultOnAllRanks(String ranks, Host host, boolean lazy)
      throws Exception {
    try (MixedWorld world = new MixedWorld(ranks, host, lazy)) {
      world.expectAll(LibtorchInteropTest::lines, Integer.getInteger("tutti.rounds", 2));
    }
  }

  @ParameterizedTest
  @ValueSource(strings = {"TL", "LTL", "LTLT"})
  void messagesArriveBothWays(String ranks) throws Exception {
    int size = ranks.length();
    List<String> types = List.of("float32", "int16", "bool", "complex128", "float16");
    MixedWorld.Script script =
        rank -> {
          List<String> lines = new ArrayList<>();
          for (String type : types) {
            for (int from = 0; from < size; from++) {
              for (int to = 0; to < size; to++) {
                for (int count : new int[] {0, 1, 5000, 300_001}) {
                  String rest = " " + (7 + from) + " " + type + " " + count;
                  if (rank == from && from != to) {
                    lines.add("send " + to + rest);
                  } else if (rank == to && from != to) {
                    lines.add("recv " + from + rest);
                  }
                }
              }
            }
          }
          if (rank < 2) {
            lines.add(rank == 0 ? "recvany 3 float32 4" : "send 0 3 float32 4");
          }
          lines.add("barrier");
          lines.add(ranks.charAt(rank) == 'L' ? "close" : "uneven");
          return lines;
        };
    try (MixedWorld world = new MixedWorld(ranks, Host.TUTTI, false)) {
      List<List<String>> checksums = world.run(script);
      for (int rank = 0; rank < size; rank++) {
        List<String> lines = script.of(rank);
        for (int i = 0; i < lines.size(); i++) {
          String line = lines.get(i);
          if (line.startsWith("recvany")) {
            line = "recv 1 3 float32 4";
          }
          if (!line.equals("close") && !line.equals("uneven")) {
            assertThat(checksums.get(rank).get(i))
                .as("%s on rank %d", line, rank)
                .isEqualTo(PeerData.crc(PeerOracle.expected(line, rank, size)));
          }
        }
      }
    }
  }

  @Test
  void roundsEveryStepAsLibtorchDoes() throws Exception {
    List<String> lines = new ArrayList<>();
    for (String type : FLOATS) {
      for (String op : List.of("sum", "avg", "product")) {
        lines.add("allreduce " + type + " " + op + " 10007 data=fraction");
      }
    }
    List<String> pure = checksumsOfRank0("LLL", lines);
    assertThat(checksumsOfRank0("LTL", lines)).isEqualTo(pure);
    List<String> own =
        checksumsOfRank0(
            "TTT",
            lines,
            GlooProvider.SHARED_BYTES.name(),
            "0",
            GlooProvider.ALGORITHMS.name(),
            "allReduce=ring");
    assertThat(own).isEqualTo(pure);
  }

  /** In bfloat16 only: libtorch does not add sparse tensors of float16. */
  @Test
  void roundsSparseSumsAsLibtorchDoes() throws Exception {
    List<String> lines = List.of("allreduce_sparse bfloat16 sum 997 7 500 data=fraction");
    assertThat(checksumsOfRank0("LTL", lines)).isEqualTo(checksumsOfRank0("LLL", lines));
  }

  private static List<String> checksumsOfRank0(String ranks, List<String> lines, String... settings)
      throws Exception {
    try (MixedWorld world = new MixedWorld(ranks, Host.TUTTI, false, settings)) {
      List<List<String>> checksums =
          world.run(
              rank -> {
                List<String> script = new ArrayList<>(lines);
                if (ranks.charAt(rank) == 'L') {
                  script.add("close");
                }
                return script;
              });
      List<String> first = checksums.get(0).subList(0, lines.size());
      assertThat(checksums)
          .hasSize(ranks.length())
          .allSatisfy(all -> assertThat(all.subList(0, lines.size())).isEqualTo(first));
      return first;
    }
  }
}
