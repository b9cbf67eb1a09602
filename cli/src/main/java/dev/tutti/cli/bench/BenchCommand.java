package dev.tutti.cli.bench;

import dev.tutti.Capabilities;
import dev.tutti.DType;
import dev.tutti.ReduceOp;
import dev.tutti.Settings;
import dev.tutti.cli.doctor.HostCheck;
import dev.tutti.cli.help.Version;
import dev.tutti.cli.process.Counts;
import dev.tutti.cli.process.LaunchException;
import dev.tutti.cli.process.Terminal;
import dev.tutti.cli.run.LaunchRendezvousFactory;
import dev.tutti.cli.run.RankExit;
import dev.tutti.runtime.settings.Providers;
import dev.tutti.spi.BackendProvider;
import java.io.IOException;
import java.io.PrintStream;
import java.nio.file.Path;
import java.time.Duration;
import java.time.LocalDate;
import java.time.ZoneId;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.Callable;
import java.util.function.Consumer;
import java.util.function.Predicate;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Spec;

/**
 * The command bench, which measures collectives between real processes, and checks their results.
 */
@Command(
    name = "bench",
    sortOptions = false,
    description =
        "Measures operations between real processes on this machine and checks every result.",
    descriptionHeading = "%n",
    parameterListHeading = "%n",
    optionListHeading = "%nOptions:%n",
    footer = {
      "",
      "The columns are those of nccl-tests. size: bytes of the whole tensor, over all ranks if each"
          + " has a part. count: elements of the whole tensor, or of one rank's part. time: time of"
          + " one operation on rank 0, called back to back; for an operation with a root, the mean"
          + " over all roots. algbw: size / p50. busbw: algbw times 2(n-1)/n for allReduce,"
          + " (n-1)/n if each rank has a part, else 1. 1 GB/s is 10^9 bytes per second. #wrong:"
          + " wrong elements on all ranks, checked before and after the measurement; for barrier,"
          + " ranks that it let pass too early.",
      "On a device, time is measured between two events of the device's stream, around many"
          + " operations in a row, and divided by their number; p99 is taken over these means. With"
          + " --graph, the operations are replayed from a graph.",
      "A TIME without a unit is in seconds; units are ms, s, m and h, as in 500ms or 1.5h.",
      "The exit code is 1 if anything is wrong."
    })
public final class BenchCommand implements Callable<Integer> {
  private enum Format {
    table,
    json
  }

  @Mixin private BenchOptions options = new BenchOptions();

  @Mixin private SimulateOptions simulation = new SimulateOptions();

  @Option(
      names = {"--nproc", "--nproc-per-node"},
      paramLabel = "N",
      description = "Number of ranks. Default: 4.")
  private int ranks = 4;

  @Option(
      names = "--in-jvm",
      description = "Run the ranks as threads of this JVM instead of processes.")
  private boolean inJvm;

  @Option(
      names = "--format",
      paramLabel = "table|json",
      description = "Output: a table, or one JSON object per line. Default: table.")
  private Format format = Format.table;

  @Option(
      names = "--plot",
      paramLabel = "FILE.svg|FILE.png",
      description = "Also plot time and bandwidth against size.")
  private @Nullable Path plot;

  @Spec private CommandSpec spec = CommandSpec.create();

  private final Terminal terminal;
  private final LaunchRendezvousFactory rendezvousFactory;
  private final Map<String, String> environment;
  private final Settings settings;

  public BenchCommand(
      Terminal terminal,
      LaunchRendezvousFactory rendezvousFactory,
      Map<String, String> environment,
      Settings settings) {
    this.terminal = terminal;
    this.rendezvousFactory = rendezvousFactory;
    this.environment = environment;
    this.settings = settings;
  }

  @Override
  public Integer call() throws InterruptedException, IOException {
    requireFittingOptions();
    if (simulation.simulate) {
      new SimulatedBench(
              simulation,
              options,
              Providers.backendNamed(options.backend),
              settings,
              format == Format.json,
              terminal.out())
          .run();
      return 0;
    }
    BackendProvider provider = BenchDevice.provider(options, settings);
    int devices = provider.deviceCount();
    List<BenchOp> ops = ops(provider, devices > 0);
    options.ops = ops.stream().map(BenchOp::label).toList();
    if (plot != null) {
      BenchPlot.check(plot, ops);
    }
    List<String> expected = rows(ops);
    if (format == Format.table) {
      crowding(ranks, Runtime.getRuntime().availableProcessors())
          .ifPresent(terminal.out()::println);
      String note = inJvm ? "" : launch().jvmFlags(options, ranks).note();
      if (!note.isEmpty()) {
        terminal.out().println("# " + note);
      }
    }
    PrintStream remarks = format == Format.table ? terminal.out() : terminal.err();
    BenchDevice.crowding(ranks, devices).ifPresent(remarks::println);
    BenchTable table = new BenchTable(terminal.out());
    List<BenchRow> rows = new ArrayList<>();
    long start = System.nanoTime();
    int code;
    try (BenchProgress progress = new BenchProgress(terminal, expected)) {
      code =
          run(
              row ->
                  progress.step(
                      () -> {
                        rows.add(row);
                        if (format == Format.json) {
                          terminal.out().println(row.toJson());
                        } else {
                          table.add(row);
                        }
                      }));
    }
    if (code != 0) {
      return code;
    }
    if (rows.size() != expected.size()) {
      throw new LaunchException(1, "got " + rows.size() + " rows instead of " + expected.size());
    }
    long wrong = rows.stream().mapToLong(BenchRow::wrong).sum();
    if (format == Format.table) {
      terminal.out().println(summary(rows, wrong, System.nanoTime() - start));
    }
    if (plot != null) {
      BenchPlot.write(rows, plot, origin());
      remarks.println("# wrote " + plot);
    }
    return wrong == 0 ? 0 : 1;
  }

  /** Returns what is done for each row, in words. */
  private List<String> rows(List<BenchOp> ops) {
    List<String> rows = new ArrayList<>();
    for (BenchOp op : ops) {
      for (long size : op.sizes(options.sizes(), ranks, options.elementType())) {
        rows.add(
            rows.isEmpty()
                ? "starting and warming up"
                : op.label() + (op.hasSizes() ? " of " + size + " bytes" : ""));
      }
    }
    return rows;
  }

  /** Returns the line in a picture that says where its numbers come from. */
  private String origin() {
    String host =
        HostCheck.hostName() + ", " + Runtime.getRuntime().availableProcessors() + " cores";
    // The arguments of the whole command line, including the name of the subcommand.
    String arguments = String.join(" ", spec.commandLine().getParseResult().originalArgs());
    return String.join(
        " · ",
        "tutti " + Version.text(),
        "Java " + Runtime.version(),
        host,
        LocalDate.now(ZoneId.systemDefault()).toString(),
        spec.root().name() + " " + arguments);
  }

  /** Rejects options that apply only with {@code --simulate}, or only without. */
  private void requireFittingOptions() {
    String others = given(name -> !SimulateOptions.COMBINED.contains(name));
    if (simulation.simulate && !others.isEmpty()) {
      throw new IllegalArgumentException(
          "--simulate can be combined only with operations, sizes, types and ranks; omit "
              + others);
    }
    String alone = given(SimulateOptions.ONLY::contains);
    if (!simulation.simulate && !alone.isEmpty()) {
      throw new IllegalArgumentException("give --simulate, or omit " + alone);
    }
  }

  private String given(Predicate<String> which) {
    return spec.commandLine().getParseResult().matchedOptions().stream()
        .map(each -> each.names()[0])
        .filter(which)
        .sorted()
        .collect(Collectors.joining(", "));
  }

  /**
   * Returns a note for the user if ranks have to wait for cores.
   *
   * @param ranks the number of ranks on this machine
   * @param cores the number of its cores
   */
  static Optional<String> crowding(int ranks, int cores) {
    return ranks <= cores
        ? Optional.empty()
        : Optional.of(
            "# "
                + ranks
                + " ranks on "
                + Counts.of(cores, "core")
                + ": times include waiting for a core");
  }

  private String summary(List<BenchRow> rows, long wrong, long nanos) {
    double mean =
        rows.stream()
            .filter(row -> row.bytes() > 0)
            .mapToDouble(BenchRow::busBandwidth)
            .average()
            .orElse(0);
    return String.format(
        Locale.ROOT,
        "%n# %s in %s, wrong elements: %d %s, mean bus bandwidth: %s GB/s",
        Counts.of(rows.size(), "row"),
        RankExit.seconds(Duration.ofNanos(nanos)),
        wrong,
        wrong == 0 ? "OK" : "FAILED",
        BenchTable.digits(mean));
  }

  /** Checks the requested operations against the capabilities of the backend, and expands "all". */
  private List<BenchOp> ops(BackendProvider provider, boolean onDevice) {
    Capabilities capabilities = BenchDevice.capabilities(provider);
    if (ranks < 1) {
      throw new IllegalArgumentException("--nproc must be at least 1, not " + ranks);
    }
    if (options.graph && !onDevice) {
      throw new IllegalArgumentException(
          "--graph needs a device backend, such as cuda; '"
              + options.backend
              + "' works on host memory");
    }
    if (options.uneven && !capabilities.has(Capabilities.Feature.UNEVEN_PARTS)) {
      throw new IllegalArgumentException(
          "backend '" + options.backend + "' takes only parts of equal size");
    }
    if (options.symmetric && !capabilities.has(Capabilities.Feature.SYMMETRIC_MEMORY)) {
      throw new IllegalArgumentException(
          "backend '" + options.backend + "' has no symmetric memory");
    }
    if (!provider.movesData()) {
      throw new IllegalArgumentException(
          "backend '"
              + options.backend
              + "' moves no data between ranks, so there is nothing to measure or check; use a"
              + " backend that does, such as gloo");
    }
    DType dtype = options.elementType();
    ReduceOp redop = options.reduceOp();
    boolean all = options.ops.contains("all");
    List<BenchOp> ops = new ArrayList<>();
    for (BenchOp op : all ? List.of(BenchOp.values()) : named()) {
      boolean reducible = !op.reduces() || capabilities.canReduce(dtype, redop);
      boolean movable = !op.hasSizes() || capabilities.movable().contains(dtype);
      boolean enoughRanks = op != BenchOp.SEND_RECV || ranks >= 2;
      boolean recordable = !options.graph || op.isRecordable();
      if (op.isIn(capabilities) && reducible && movable && enoughRanks && recordable) {
        ops.add(op);
      } else if (!all) {
        throw new IllegalArgumentException(
            !enoughRanks
                ? "sendRecv needs at least 2 ranks"
                : !recordable
                    ? op.label() + " cannot be captured into a graph"
                    : "backend '"
                        + options.backend
                        + "' has no "
                        + op.label()
                        + (op.isIn(capabilities) ? " of " + dtype.label() : "")
                        + (op.isIn(capabilities) && movable ? " by " + redop : ""));
      }
    }
    return ops;
  }

  private List<BenchOp> named() {
    return options.ops.stream().map(BenchOp::ofLabel).distinct().toList();
  }

  private int run(Consumer<BenchRow> rows) throws InterruptedException {
    if (inJvm) {
      return new BenchThreads(ranks, settings, rows).run(options);
    }
    return launch().run(options, ranks, rows);
  }

  private BenchLaunch launch() {
    return new BenchLaunch(terminal, rendezvousFactory, environment, spec);
  }
}
