package dev.tutti.cli.bench;

import dev.tutti.OpType;
import dev.tutti.Settings;
import dev.tutti.cli.process.LaunchException;
import dev.tutti.cli.process.Terminal;
import dev.tutti.cli.run.LaunchRendezvousFactory;
import dev.tutti.cli.simulate.CostModel;
import dev.tutti.cli.simulate.Fit;
import dev.tutti.cli.simulate.Fit.Sample;
import dev.tutti.cli.simulate.LinkCost;
import dev.tutti.cli.simulate.Network;
import dev.tutti.cli.simulate.NetworkFile;
import dev.tutti.cli.simulate.Shares;
import dev.tutti.spi.BackendProvider;
import dev.tutti.spi.OperationPlan;
import dev.tutti.spi.PlanRequest;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.Callable;
import java.util.function.Function;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Spec;

/** The command calibrate, which measures the costs that a simulation needs. */
@Command(
    name = "calibrate",
    sortOptions = false,
    description =
        "Measures what shared memory and sockets cost on this machine, and writes a network for"
            + " tutti bench --simulate. The interfaces between hosts are not measured.",
    descriptionHeading = "%n",
    optionListHeading = "%nOptions:%n")
public final class CalibrateCommand implements Callable<Integer> {
  private static final List<BenchOp> OPS =
      List.of(BenchOp.ALL_REDUCE, BenchOp.ALL_GATHER, BenchOp.BROADCAST);
  private static final String SHARED_BYTES = "TUTTI_GLOO_SHARED_BYTES";
  private static final double CLOSE = 0.2;
  private static final String ROW = "%-7s %-10s %6s %10s %12s %12s %8s";

  @Option(
      names = "--output",
      paramLabel = "FILE",
      description = "Where to write the network. Default: standard output.")
  private @Nullable Path output;

  @Option(
      names = "--ranks",
      split = ",",
      paramLabel = "N",
      description = "Numbers of ranks whose times are fitted. Default: 2,4.")
  private List<Integer> ranks = new ArrayList<>(List.of(2, 4));

  @Option(
      names = "--check",
      split = ",",
      paramLabel = "N",
      description = "Numbers of ranks that are also measured, to compare them with the model.")
  private List<Integer> checked = new ArrayList<>();

  @Option(
      names = "--min-bytes",
      paramLabel = "BYTES",
      description = "Smallest size. Default: 1K.",
      converter = BenchOptions.BytesConverter.class)
  private long minBytes = 1024;

  @Option(
      names = "--max-bytes",
      paramLabel = "BYTES",
      description = "Largest size. Default: 64M.",
      converter = BenchOptions.BytesConverter.class)
  private long maxBytes = 64L << 20;

  @Option(
      names = "--time",
      paramLabel = "TIME",
      description = "How long to measure a size. Default: 200ms.")
  private Duration time = Duration.ofMillis(200);

  @Spec private CommandSpec spec = CommandSpec.create();

  private final Terminal terminal;
  private final LaunchRendezvousFactory rendezvousFactory;
  private final Map<String, String> environment;

  public CalibrateCommand(
      Terminal terminal,
      LaunchRendezvousFactory rendezvousFactory,
      Map<String, String> environment) {
    this.terminal = terminal;
    this.rendezvousFactory = rendezvousFactory;
    this.environment = environment;
  }

  /** A link of this machine, and how ranks are made to use it. */
  private enum Medium {
    MEMORY("memory"),
    SOCKET("socket");

    private final String label;

    Medium(String label) {
      this.label = label;
    }
  }

  /** A measured operation, with its steps. */
  private record Measured(Medium medium, BenchRow row, PlanRequest request, OperationPlan plan) {
    Sample sample() {
      return new Sample(request, plan, row.p50() / 1e6);
    }
  }

  @Override
  public Integer call() throws InterruptedException, IOException {
    requireSeveral("--ranks", ranks);
    requireSeveral("--check", checked);
    requireWritable();
    int cores = Runtime.getRuntime().availableProcessors();
    terminal.err().println("# measuring what " + cores + " cores share");
    Map<Medium, Shares> shares =
        Map.of(
            Medium.MEMORY,
            SharedCores.ofMemory(cores),
            Medium.SOCKET,
            SharedCores.ofSockets(cores));
    List<Measured> all = new ArrayList<>();
    for (Medium medium : Medium.values()) {
      for (int count : ranks) {
        all.addAll(measure(medium, count));
      }
    }
    Function<Medium, LinkCost> fitted =
        medium ->
            Fit.fit(
                all.stream().filter(each -> each.medium == medium).map(Measured::sample).toList(),
                Objects.requireNonNull(shares.get(medium)));
    // One host; the rest is a guess, which the file says.
    Network network =
        Network.ofHosts(cores, cores, fitted.apply(Medium.MEMORY), fitted.apply(Medium.SOCKET));
    for (Medium medium : Medium.values()) {
      for (int count : checked) {
        all.addAll(measure(medium, count));
      }
    }
    compare(all, network);
    write(network, cores);
    return 0;
  }

  private static void requireSeveral(String option, List<Integer> counts) {
    for (int count : counts) {
      if (count < 2) {
        throw new IllegalArgumentException(option + " must be at least 2, not " + count);
      }
    }
  }

  /** Opens the file before anything is measured, and leaves it as it is. */
  private void requireWritable() throws IOException {
    if (output != null) {
      boolean exists = Files.exists(output);
      Files.newOutputStream(output, StandardOpenOption.CREATE, StandardOpenOption.APPEND).close();
      if (!exists) {
        Files.delete(output);
      }
    }
  }

  private List<Measured> measure(Medium medium, int count) throws InterruptedException {
    Map<String, String> changed = new HashMap<>(environment);
    if (medium == Medium.SOCKET) {
      changed.put(SHARED_BYTES, "0");
    }
    Settings settings = Settings.ofEnvironment(changed);
    BenchOptions options = new BenchOptions();
    options.ops = OPS.stream().map(BenchOp::label).toList();
    options.minBytes = minBytes;
    options.maxBytes = maxBytes;
    options.stepFactor = 4;
    options.time = time;
    options.sizes();
    BackendProvider provider = BenchDevice.provider(options, settings);
    terminal.err().println("# measuring " + count + " ranks, " + medium.label);
    List<Measured> measured = new ArrayList<>();
    int code =
        new BenchLaunch(terminal, rendezvousFactory, changed, spec)
            .run(
                options,
                count,
                row -> {
                  terminal
                      .err()
                      .printf(
                          Locale.ROOT,
                          "# %s of %d bytes: %s us%n",
                          row.op(),
                          row.bytes(),
                          BenchTable.digits(row.p50()));
                  measured.add(measured(medium, row, provider, settings));
                });
    if (code != 0) {
      throw new LaunchException(code, "the measurement with " + count + " ranks failed");
    }
    return measured;
  }

  private static Measured measured(
      Medium medium, BenchRow row, BackendProvider provider, Settings settings) {
    OpType type = BenchOp.ofLabel(row.op()).type();
    int cores = Runtime.getRuntime().availableProcessors();
    PlanRequest request = new PlanRequest(type, row.bytes(), 1, row.ranks(), cores, settings);
    return new Measured(medium, row, request, provider.plan(request).orElseThrow());
  }

  private void compare(List<Measured> all, Network network) {
    terminal
        .err()
        .printf(
            Locale.ROOT,
            "#" + ROW + "%n",
            "link",
            "op",
            "ranks",
            "bytes",
            "measured us",
            "model us",
            "error");
    Map<String, List<Double>> errors = new HashMap<>();
    for (Measured each : all) {
      BenchRow row = each.row;
      double model =
          CostModel.cost(each.request, each.plan, network.withRanks(row.ranks())).seconds() * 1e6;
      double error = model / row.p50() - 1;
      errors
          .computeIfAbsent(
              each.medium.label + ", " + row.ranks() + " ranks", _ -> new ArrayList<>())
          .add(Math.abs(error));
      terminal
          .err()
          .printf(
              Locale.ROOT,
              " " + ROW + "%n",
              each.medium.label,
              row.op(),
              row.ranks(),
              row.bytes(),
              BenchTable.digits(row.p50()),
              BenchTable.digits(model),
              String.format(Locale.ROOT, "%+.0f %%", error * 100));
    }
    errors.forEach(
        (what, list) ->
            terminal
                .err()
                .printf(
                    Locale.ROOT,
                    "# %s: %d of %d within %.0f %%%n",
                    what,
                    list.stream().filter(error -> error <= CLOSE).count(),
                    list.size(),
                    CLOSE * 100));
  }

  private void write(Network network, int cores) throws IOException {
    String counts = ranks.stream().map(String::valueOf).collect(Collectors.joining(", "));
    String text =
        "# Memory and sockets: measured with "
            + counts
            + " ranks on "
            + cores
            + " cores. NIC, rack, spine, devices and store: not measured, to be set.\n"
            + NetworkFile.text(network);
    if (output == null) {
      terminal.out().print(text);
    } else {
      Files.writeString(output, text);
    }
  }
}
