package dev.tutti.cli.bench;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.cli.TestTerminal;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class SimulatedBenchTest {
  @TempDir private Path folder;

  private final TestTerminal terminal = new TestTerminal();
  private Path file = Path.of("");

  @BeforeEach
  void writeNetwork() throws IOException {
    file =
        Files.writeString(
            folder.resolve("network"),
            """
            host.ranks=2
            host.cores=4
            rack.hosts=8
            memory.round.us=1
            memory.each.us=0.5
            memory.reduce.GBps=10
            memory.spread.GBps=10
            memory.gather.GBps=10
            memory.shares=1,1.5
            socket.round.us=10
            socket.each.us=2
            socket.reduce.GBps=2
            socket.spread.GBps=2
            socket.gather.GBps=2
            socket.shares=1
            nic.latency.us=5
            nic.GBps=1
            spine.latency.us=3
            spine.oversubscription=2
            device.start.us=1
            device.trip.us=2
            device.GBps=100
            device.gap.us=3
            device.call.us=8
            store.call.us=10
            store.growth=0
            store.key.us=1
            store.wake.us=300
            store.waiter.us=20
            store.join.us=3000
            store.disconnect.us=100
            """);
  }

  private int simulate(String... options) {
    List<String> all = new ArrayList<>(List.of("bench"));
    all.addAll(List.of(options));
    all.addAll(List.of("--simulate", "--network=" + file));
    return terminal.tutti(Map.of(), all.toArray(String[]::new));
  }

  private static String words(String line) {
    return line.strip().replaceAll(" +", " ");
  }

  @Test
  void printsTimesPathsAndWhatBinds() {
    assertThat(simulate("allReduce", "barrier", "--ranks=2,4", "--min-bytes=1K", "--max-bytes=1K"))
        .isZero();
    List<String> lines = terminal.out().lines().map(SimulatedBenchTest::words).toList();
    assertThat(lines.get(0))
        .isEqualTo("# allReduce, 2 ranks on 1 host, backend gloo, simulated on " + file);
    assertThat(lines.get(1))
        .isEqualTo("# size count type redop | time algbw busbw | path bound by");
    // A round of 1 + 2 * 0.5 µs; 2,048 bytes moved and as many reduced at 0.1 ns.
    assertThat(lines.get(3))
        .isEqualTo("1024 256 float32 sum | 2.41 0.42 0.42 | gloo/shared/one-shot rounds 83 %");
    assertThat(lines.get(4)).startsWith("# allReduce, 4 ranks on 2 hosts");
    assertThat(lines.get(7)).contains("| gloo/two-level latency ");
    // Two rounds in memory, and the messages of two leaders.
    assertThat(lines.getLast())
        .isEqualTo("0 0 none none | 21.00 0.00 0.00 | gloo/two-level latency 71 %");
    assertThat(terminal.err()).isEmpty();
  }

  @Test
  void oneRankWaitsForNothing() {
    assertThat(simulate("--ranks=1", "--min-bytes=8", "--max-bytes=8")).isZero();
    assertThat(words(terminal.out().lines().toList().getLast()))
        .isEqualTo("8 2 float32 sum | 0.00 0.00 0.00 | nothing");
  }

  @Test
  void printsJson() {
    assertThat(simulate("--ranks=2", "--min-bytes=1K", "--max-bytes=1K", "--format=json")).isZero();
    assertThat(terminal.out().strip())
        .isEqualTo(
            "{\"op\":\"allReduce\",\"backend\":\"gloo\",\"ranks\":2,\"hosts\":1,\"bytes\":1024,"
                + "\"count\":256,\"dtype\":\"float32\",\"redop\":\"sum\",\"time_us\":2.410,"
                + "\"algbw_gbps\":0.424967,\"busbw_gbps\":0.424967,"
                + "\"path\":\"gloo/shared/one-shot\",\"bound\":\"rounds\",\"share\":0.830}");
  }

  @Test
  void simulatesMoreBytesAndRanksThanTheMachineHas() {
    assertThat(simulate("all", "--ranks=100000", "--min-bytes=1024G", "--max-bytes=1024G"))
        .isZero();
    assertThat(terminal.out())
        .contains("# allReduce, 100000 ranks on 50000 hosts", "# barrier, 100000 ranks");
  }

  @Test
  void simulatesTraining() {
    assertThat(simulate("--ranks=1,2,16", "--gradients=100M", "--compute=30ms")).isZero();
    List<String> lines = terminal.out().lines().map(SimulatedBenchTest::words).toList();
    assertThat(lines).hasSize(5);
    assertThat(lines.get(0))
        .startsWith("# training, 104857600 bytes of gradients in buckets of 26214400, 30.00 ms");
    assertThat(lines.get(2)).isEqualTo("1 1 30.00 0.00 100 % 1.00");
    double two = Double.parseDouble(lines.get(3).split(" ")[2]);
    double sixteen = Double.parseDouble(lines.get(4).split(" ")[2]);
    assertThat(two).isGreaterThan(30);
    assertThat(sixteen).isGreaterThan(two);
  }

  @Test
  void simulatesGpusThatTheMachineDoesNotHave() {
    String[] options = {"--backend=cuda", "--ranks=2", "--min-bytes=1K", "--max-bytes=1K"};
    assertThat(simulate(options)).as(terminal.err()).isZero();
    assertThat(words(terminal.out().lines().toList().getLast()))
        .isEqualTo("1024 256 float32 sum | 8.00 0.13 0.13 | cuda/one-shot launch 75 %");
    assertThat(
            simulate(
                Stream.concat(Stream.of("--graph"), Stream.of(options)).toArray(String[]::new)))
        .isZero();
    assertThat(words(terminal.out().lines().toList().getLast()))
        .isEqualTo("1024 256 float32 sum | 3.01 0.34 0.34 | cuda/one-shot latency 66 %");
  }

  @Test
  void simulatesTheStore() {
    assertThat(simulate("--ranks=2,100", "--store")).isZero();
    List<String> lines = terminal.out().lines().map(SimulatedBenchTest::words).toList();
    assertThat(lines.get(0)).startsWith("# store of all ranks, simulated on ");
    assertThat(lines.get(1)).isEqualTo("# what ranks hosts calls keys read waiters time");
    // 26 calls of 10 µs and 30 keys of 1 µs, while a rank works for 3 ms.
    assertThat(lines.get(3)).isEqualTo("join 2 1 26 30 740 2 3.00");
    // 300 µs, 20 for each of two that wait, and 100 for the only connection.
    assertThat(lines.get(4)).isEqualTo("failure 2 1 3 3 68 2 0.44");
    assertThat(lines.get(5)).isEqualTo("wake 2 1 3 3 0 2 0.34");
    // A call of each rank: 100 of 10 µs.
    assertThat(lines.getLast()).isEqualTo("call 100 50 100 100 0 0 1.00");
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      value = {
        "--ranks=3 | --ranks must be from 1 to the 2 of a host, or a multiple of them, not 3",
        "--min-bytes=4 | --simulate needs --ranks and --network",
        "--ranks=2 --iters=4 | --simulate can be combined only with operations, sizes, types and"
            + " ranks; omit --iters",
        "--ranks=2 --step-factor=1 | --step-factor must be at least 2, not 1",
        "--ranks=2 --step-factor=0 | --step-factor must be at least 2, not 0",
        "--ranks=2 --min-bytes=2K --max-bytes=1K | --min-bytes must be from 1 to --max-bytes, not"
            + " 2048 while --max-bytes is 1024",
        "--ranks=2 --min-bytes=0 | --min-bytes must be from 1 to --max-bytes, not 0",
        "--ranks=2 --backend=threaded | backend 'threaded' does not state the steps of allReduce",
      })
  void saysWhatIsWrong(String options, String message) {
    assertThat(simulate(options.split(" "))).isNotZero();
    assertThat(terminal.err()).contains(message);
  }

  @Test
  void optionsOfASimulationNeedIt() {
    assertThat(terminal.tutti(Map.of(), "bench", "--ranks=2", "--network=" + file)).isEqualTo(2);
    assertThat(terminal.err()).contains("give --simulate, or omit --network, --ranks");
    assertThat(terminal.out()).isEmpty();
  }

  @Test
  void namesAFileThatIsNotThere() {
    file = folder.resolve("none");
    assertThat(simulate("--ranks=2")).isNotZero();
    assertThat(terminal.err()).contains("none");
  }
}
