package dev.tutti.cli.bench;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;
import static org.assertj.core.api.Assumptions.assumeThat;

import dev.tutti.Settings;
import dev.tutti.cli.Main;
import dev.tutti.cli.TestTerminal;
import dev.tutti.cli.help.Version;
import dev.tutti.cli.run.CommandProcess;
import dev.tutti.runtime.settings.Providers;
import dev.tutti.spi.DeviceSession;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.Callable;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import javax.xml.parsers.DocumentBuilderFactory;
import org.junit.jupiter.api.Order;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.w3c.dom.Document;
import org.w3c.dom.Element;
import org.w3c.dom.NodeList;

@Order(1)
@Timeout(600)
class BenchCommandTest {
  private final TestTerminal terminal = new TestTerminal();

  private int bench(String... options) {
    List<String> all = new ArrayList<>(List.of("bench"));
    all.addAll(Arrays.asList(options));
    return terminal.tutti(System.getenv(), all.toArray(String[]::new));
  }

  /** Runs the benchmark on three threads, by default. */
  private int benchThreads(String... options) {
    List<String> all = new ArrayList<>(List.of("--in-jvm"));
    all.addAll(Arrays.asList(options));
    for (String given : List.of("--backend=threaded", "--nproc=3", "--iters=20", "--warmup=5")) {
      String name = given.substring(0, given.indexOf('=') + 1);
      if (all.stream().noneMatch(option -> option.startsWith(name))) {
        all.add(given);
      }
    }
    return bench(all.toArray(String[]::new));
  }

  @Test
  void printsATableInTheColumnsOfNcclTests() {
    assertThat(
            benchThreads(
                "allReduce", "barrier", "--min-bytes=8", "--max-bytes=2K", "--step-factor=16"))
        .isZero();
    List<String> lines = new ArrayList<>(terminal.out().lines().toList());
    BenchCommand.crowding(3, Runtime.getRuntime().availableProcessors())
        .ifPresent(crowding -> assertThat(lines.removeFirst()).isEqualTo(crowding));
    assertThat(lines.get(0)).isEqualTo("# allReduce, 3 ranks, backend threaded");
    assertThat(lines.get(1).replaceAll(" +", " "))
        .isEqualTo("# size count type redop | time p50 time p99 algbw busbw #wrong");
    assertThat(lines.subList(3, 6))
        .allMatch(line -> line.matches(" +\\d+ +\\d+ +float32 +sum \\|( +\\d+\\.\\d+){4} +0"));
    assertThat(lines.subList(3, 6))
        .extracting(line -> line.trim().split(" +")[0])
        .containsExactly("8", "128", "2048");
    assertThat(lines.get(7)).isEqualTo("# barrier, 3 ranks, backend threaded");
    assertThat(lines.getLast()).matches("# 4 rows in .* s, wrong elements: 0 OK, mean bus .* GB/s");
    assertThat(terminal.err()).isEmpty();
  }

  @Test
  void saysThatRanksShareCores() {
    assertThat(BenchCommand.crowding(4, 4)).isEmpty();
    assertThat(BenchCommand.crowding(4, 2))
        .contains("# 4 ranks on 2 cores: times include waiting for a core");
  }

  @Test
  void printsOneJsonObjectALine() {
    assertThat(
            benchThreads(
                "allGather", "--format=json", "--dtype=int16", "--min-bytes=1K", "--max-bytes=1K"))
        .isZero();
    String json = terminal.out();
    Matcher matcher =
        Pattern.compile(
                "\\{\"op\":\"allGather\",\"backend\":\"threaded\",\"ranks\":3,\"bytes\":1020,"
                    + "\"count\":170,\"dtype\":\"int16\",\"redop\":\"none\","
                    + "\"time_us_p50\":([0-9.]+),\"time_us_p99\":([0-9.]+),"
                    + "\"time_us_mean\":([0-9.]+),\"algbw_gbps\":([0-9.]+),\"busbw_gbps\":([0-9.]+),\"wrong\":0}\\R")
            .matcher(json);
    assertThat(json).matches(matcher.pattern());
    assertThat(matcher.matches()).isTrue();
    double p50 = Double.parseDouble(matcher.group(1));
    double algorithm = Double.parseDouble(matcher.group(4));
    assertThat(p50).isPositive().isLessThanOrEqualTo(Double.parseDouble(matcher.group(2)));
    assertThat(algorithm).isCloseTo(1020 / p50 / 1e3, within(1e-5));
    assertThat(Double.parseDouble(matcher.group(3))).isPositive();
    assertThat(Double.parseDouble(matcher.group(5))).isCloseTo(algorithm * 2 / 3, within(1e-5));
  }

  @Test
  void measuresAllThatTheBackendHas() {
    assertThat(benchThreads("all", "--format=json", "--max-bytes=1K", "--min-bytes=1K")).isZero();
    List<String> ops =
        terminal
            .out()
            .lines()
            .map(line -> line.replaceFirst(".*\"op\":\"(\\w+)\".*", "$1"))
            .toList();
    assertThat(ops)
        .containsExactlyElementsOf(Arrays.stream(BenchOp.values()).map(BenchOp::label).toList());
  }

  @Test
  void measuresBetweenProcesses() throws Exception {
    try (CommandProcess bench =
        CommandProcess.startProgram(
            Map.of("TUTTI_SLOW", "0"), // ranks may take long to start
            Main.class,
            "bench",
            "all",
            "--nproc=3",
            "--timeout=10m",
            "--iters=20",
            "--warmup=5",
            "--min-bytes=1K",
            "--max-bytes=1K",
            "--format=json")) {
      assertThat(bench.exitCode()).as(() -> bench.lines().toString()).isZero();
      assertThat(bench.lines())
          .hasSizeGreaterThanOrEqualTo(6)
          .allMatch(line -> line.contains("\"backend\":\"gloo\",\"ranks\":3,"))
          .allMatch(line -> line.endsWith("\"wrong\":0}"))
          .anyMatch(line -> line.startsWith("{\"op\":\"allReduce\","))
          .anyMatch(line -> line.startsWith("{\"op\":\"sendRecv\","));
    }
  }

  @Test
  void measuresInSymmetricMemory() {
    assertThat(
            benchThreads(
                "allReduce",
                "allGather",
                "--symmetric",
                "--format=json",
                "--min-bytes=3K",
                "--max-bytes=3K"))
        .isZero();
    assertThat(terminal.out().lines()).hasSize(2).allMatch(line -> line.endsWith("\"wrong\":0}"));
  }

  @Test
  void measuresPartsOfUnequalSize() {
    assertThat(
            benchThreads(
                "allGather",
                "reduceScatter",
                "--uneven",
                "--format=json",
                "--min-bytes=30K",
                "--max-bytes=30K"))
        .isZero();
    assertThat(terminal.out().lines())
        .hasSize(2)
        .allMatch(line -> line.contains("\"bytes\":30720,") && line.endsWith("\"wrong\":0}"));
  }

  @ParameterizedTest
  @ValueSource(strings = {"", "--graph", "--iters=150"})
  void measuresOnDevices(String option, @TempDir Path directory) throws Exception {
    List<String> options = new ArrayList<>(List.of("all", "--backend=played", "--format=json"));
    options.addAll(List.of("--min-bytes=1200", "--max-bytes=1200"));
    if (!option.isEmpty()) {
      options.add(option);
    }
    assertThat(onPlayedDevices(directory, () -> benchThreads(options.toArray(String[]::new))))
        .as(() -> terminal.err())
        .isZero();
    List<String> lines = terminal.out().lines().toList();
    assertThat(lines)
        .hasSize(option.equals("--graph") ? BenchOp.values().length - 1 : BenchOp.values().length)
        .allMatch(line -> line.contains("\"backend\":\"played\",\"ranks\":3,"))
        .allMatch(line -> line.endsWith("\"wrong\":0}"));
    assertThat(terminal.err().trim())
        .isEqualTo(
            "# 3 ranks on 2 devices: ranks share them, so times include waiting for each"
                + " other's kernels");
  }

  @Test
  void runsAllOperationsOfItersOnDevices(@TempDir Path directory) throws Exception {
    List<String> options = new ArrayList<>(List.of("allReduce", "--backend=played"));
    options.addAll(List.of("--iters=150", "--warmup=0", "--min-bytes=8", "--max-bytes=8"));
    long before = PlayedDevices.TIMES.get();
    assertThat(onPlayedDevices(directory, () -> benchThreads(options.toArray(String[]::new))))
        .isZero();
    // On each of three ranks: one warm-up, two lead-in operations, and 2 times 100 operations.
    assertThat(PlayedDevices.TIMES.get() - before).isEqualTo(15);
  }

  @Test
  void recordsAllOperationsOfIters() {
    BenchCase item = new BenchCase(8, 2, 1, () -> {}, () -> 0, List.of());
    DeviceSession device = new PlayedDevices().openDevice(0);
    Duration limit = Duration.ofSeconds(10);
    assertThat(BenchLoop.onDevice(item, device, 39, true, limit).operations()).isEqualTo(40);
    assertThat(BenchLoop.onDevice(item, device, 39, false, limit).operations()).isEqualTo(39);
    assertThat(BenchLoop.onDevice(item, device, null, true, limit).operations()).isEqualTo(100);
  }

  @ParameterizedTest
  @CsvSource({"1, -1, device 1 cannot be opened", "-1, 1, device 1 is full"})
  void saysWhatFailedFirst(int unopened, int full, String message, @TempDir Path directory)
      throws Exception {
    PlayedDevices.unopened = unopened;
    PlayedDevices.full = full;
    try {
      assertThat(
              onPlayedDevices(
                  directory, () -> benchThreads("--backend=played", "--nproc=2", "--timeout=5m")))
          .isEqualTo(1);
    } finally {
      PlayedDevices.unopened = -1;
      PlayedDevices.full = -1;
    }
    assertThat(terminal.err().trim()).isEqualTo("tutti bench: " + message);
  }

  @Test
  void leavesOperationsWithoutSizesOutOfTheMeanBandwidth() {
    assertThat(benchThreads("allReduce", "barrier", "--min-bytes=1M", "--max-bytes=1M")).isZero();
    List<String> lines = terminal.out().lines().toList();
    List<String> row =
        lines.stream()
            .filter(line -> line.trim().startsWith("1048576 "))
            .map(line -> List.of(line.trim().split(" +")))
            .findFirst()
            .orElseThrow();
    // The row has more digits if the operation was slow.
    Matcher mean =
        Pattern.compile(", mean bus bandwidth: ([0-9.]+) GB/s$").matcher(lines.getLast());
    assertThat(mean.find()).as(lines.getLast()).isTrue();
    assertThat(Double.parseDouble(mean.group(1)))
        .isCloseTo(Double.parseDouble(row.get(8)), within(0.006));
  }

  @Test
  void refusesToRecordMessages(@TempDir Path directory) throws Exception {
    assertThat(
            onPlayedDevices(
                directory, () -> benchThreads("sendRecv", "--backend=played", "--graph")))
        .isEqualTo(Main.USAGE);
    assertThat(terminal.err().trim())
        .isEqualTo("tutti bench: sendRecv cannot be captured into a graph");
  }

  private static int onPlayedDevices(Path directory, Callable<Integer> bench) throws Exception {
    Path services = Files.createDirectories(directory.resolve("META-INF/services"));
    Files.writeString(
        services.resolve("dev.tutti.spi.BackendProvider"), PlayedDevices.class.getName() + "\n");
    ClassLoader before = Thread.currentThread().getContextClassLoader();
    try (URLClassLoader loader =
        new URLClassLoader(new URL[] {directory.toUri().toURL()}, before)) {
      Thread.currentThread().setContextClassLoader(loader);
      return bench.call();
    } finally {
      Thread.currentThread().setContextClassLoader(before);
    }
  }

  @Test
  void saysInOneSentenceThatThereIsNoGpu() {
    Optional<String> reason =
        Providers.reasonAgainst(Providers.backends().get("cuda"), Settings.fromEnvironment());
    assumeThat(reason).as("this machine has a GPU").isPresent();
    assertThat(bench("--backend=cuda", "--nproc=2", "--graph", "--symmetric")).isOne();
    assertThat(terminal.out()).isEmpty();
    assertThat(terminal.err().trim())
        .isEqualTo("tutti bench: backend 'cuda' cannot run here: " + reason.orElseThrow());
  }

  @Test
  void drawsAChart(@TempDir Path directory) throws Exception {
    Path file = directory.resolve("c".repeat(200) + ".svg");
    assertThat(benchThreads("allReduce", "--max-bytes=4K", "--plot=" + file)).isZero();
    DocumentBuilderFactory factory = DocumentBuilderFactory.newInstance();
    factory.setFeature("http://apache.org/xml/features/nonvalidating/load-external-dtd", false);
    Document svg = factory.newDocumentBuilder().parse(file.toFile());
    NodeList texts = svg.getElementsByTagName("text");
    List<String> labels = new ArrayList<>();
    Set<String> legendLines = new TreeSet<>();
    for (int i = 0; i < texts.getLength(); i++) {
      labels.add(texts.item(i).getTextContent());
      assertThat(((Element) texts.item(i)).getAttribute("style"))
          .as("viewers draw texts without a size larger than they were measured")
          .contains("font-size:");
      if (labels.getLast().matches("allReduce p\\d+")) {
        legendLines.add(((Element) texts.item(i)).getAttribute("y"));
      }
    }
    assertThat(legendLines).as("a line for each").hasSize(2).doesNotContain("");
    assertThat(labels)
        .contains(
            "Time (threaded, 3 ranks, float32)",
            "Bus bandwidth (threaded, 3 ranks, float32)",
            "allReduce p50",
            "allReduce p99",
            "16 B",
            "4 KiB");
    // The origin of the results, on as many lines as it needs.
    int foot = labels.size() - 1;
    while (!labels.get(foot).startsWith("tutti ")) {
      foot--;
    }
    List<String> origin = labels.subList(foot, labels.size());
    assertThat(origin).hasSizeGreaterThan(1);
    assertThat(origin.getFirst())
        .startsWith("tutti " + Version.text() + " · Java " + Runtime.version() + " · ")
        .contains(", " + Runtime.getRuntime().availableProcessors() + " cores · 20");
    assertThat(String.join("", origin).replace(" ", ""))
        .contains("·tuttibench")
        .doesNotContain("benchbench")
        .contains("allReduce--max-bytes=4K--plot=" + file);
  }

  @Test
  void saysWhereNoChartCanBeWrittenBeforeItMeasures(@TempDir Path directory) {
    assertThat(benchThreads("--plot=" + directory)).isEqualTo(1);
    assertThat(terminal.out()).isEmpty();
    assertThat(terminal.err().trim())
        .isEqualTo("tutti bench: cannot write the plot: " + directory + ": Is a directory");
    Path file = directory.resolve("none.svg");
    assertThat(benchThreads("barrier", "--plot=" + file)).isEqualTo(Main.USAGE);
    assertThat(terminal.out()).isEmpty();
    assertThat(terminal.err())
        .contains("tutti bench: there is nothing to plot: no operation has sizes");
    assertThat(file).doesNotExist();
  }

  @Test
  void countsOneRankAndOneRow() {
    assertThat(benchThreads("--nproc=1", "--max-bytes=8")).isZero();
    assertThat(terminal.out()).contains("# allReduce, 1 rank, backend ", "# 1 row in ");
  }

  @Test
  void showsWhatItMeasuredAlsoWhereTheDiskIsFull() {
    assumeThat(Path.of("/dev/full")).as("a file that is always full").exists();
    assertThat(benchThreads("--max-bytes=16", "--plot=/dev/full")).isEqualTo(1);
    assertThat(terminal.out()).contains("# 2 rows in ", "wrong elements: 0 OK");
    assertThat(terminal.err().trim())
        .isEqualTo("tutti bench: cannot write the plot: No space left on device");
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      value = {
        "allSing | no such operation: 'allSing'",
        "--backend=fake | backend 'fake' moves no data between ranks",
        "--backend=nope | no backend 'nope' on the class path",
        "--dtype=float33 | no such dtype: 'float33'",
        "--redop=median | no such reduce op: 'median'",
        "--redop=band | backend 'threaded' has no allReduce of float32 by BAND",
        "--dtype=float8_e5m2 | backend 'threaded' has no allReduce of float8_e5m2",
        "--min-bytes=0 | --min-bytes must be from 1 to --max-bytes",
        "--step-factor=1 | --step-factor must be at least 2, not 1",
        "--graph | --graph needs a device backend, such as cuda; 'threaded' works on host memory",
        "--nproc=0 | --nproc must be at least 1, not 0",
        "--iters=0 | --iters must be at least 1, not 0",
        "--warmup=-1 | --warmup must not be negative: -1",
        "--timeout=0 | --timeout must be at least 1 ms, not 0.0 ms",
        "--timeout=0.5ms | --timeout must be at least 1 ms, not 0.5 ms",
        "--time=0.5ms | --time must be at least 1 ms, not 0.5 ms",
        "--time=5x | Invalid value for option '--time': '5x': expected a time such as 30, 250ms,",
        "--format=xml | Invalid value for option '--format': expected one of [table, json] ",
        "--plot=/no/such/folder/x.svg | --plot /no/such/folder/x.svg: no such folder",
        "--max-bytes=12Q | option '--max-bytes': '12Q': expected a number of bytes such as 4096,",
        "--max-bytes=9999999999G | '9999999999G': the number of bytes is too large",
        "--max-bytes=8589934591G | bytes of memory of this machine, not 9223372035781033984",
        "--shade=red | Unknown option: '--shade=red'",
      })
  void saysInOneLineWhatIsWrong(String option, String message) {
    assertThat(benchThreads(option)).isNotZero();
    assertThat(terminal.out()).isEmpty();
    assertThat(terminal.err().lines()).hasSize(1);
    assertThat(terminal.err()).startsWith("tutti bench: ").contains(message);
    assertThat(terminal.err()).doesNotContain("java.");
  }

  @Test
  void listsSizesUpToTheLargestNumber() {
    assertThat(BenchOptions.sizes(8, 70, 3)).containsExactly(8L, 24L);
    assertThat(BenchOptions.sizes(8, 72, 3)).containsExactly(8L, 24L, 72L);
    assertThat(BenchOptions.sizes(1, Long.MAX_VALUE, 2)).hasSize(63).endsWith(1L << 62);
  }

  @Test
  void printsTheMeanOfSmallBandwidthsWithThreeDigits() {
    assertThat(benchThreads("allReduce", "--min-bytes=8", "--max-bytes=8")).isZero();
    List<String> lines = terminal.out().lines().toList();
    String row =
        lines.stream().filter(line -> line.trim().startsWith("8 ")).findFirst().orElseThrow();
    assertThat(lines.getLast())
        .endsWith(", mean bus bandwidth: " + row.trim().split(" +")[8] + " GB/s");
    assertThat(BenchTable.digits(0.00001634)).isEqualTo("0.0000163");
    assertThat(BenchTable.digits(0.0256)).isEqualTo("0.0256");
    assertThat(BenchTable.digits(0.256)).isEqualTo("0.26");
    assertThat(BenchTable.digits(0)).isEqualTo("0.00");
    assertThat(BenchTable.digits(1e-12)).hasSize(11);
  }

  @Test
  void showsTheStackTraceOnlyWhenAsked() {
    assertThat(benchThreads("--debug", "--redop=median")).isEqualTo(Main.USAGE);
    assertThat(terminal.err())
        .contains("IllegalArgumentException", "at dev.tutti.")
        .contains("tutti bench: no such reduce op: 'median'");
  }
}
