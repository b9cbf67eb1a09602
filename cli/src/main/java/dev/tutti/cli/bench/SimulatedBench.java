package dev.tutti.cli.bench;

import dev.tutti.Settings;
import dev.tutti.cli.simulate.Cost;
import dev.tutti.cli.simulate.CostModel;
import dev.tutti.cli.simulate.Network;
import dev.tutti.cli.simulate.NetworkFile;
import dev.tutti.cli.simulate.TrainingStep;
import dev.tutti.spi.BackendProvider;
import dev.tutti.spi.OperationPlan;
import dev.tutti.spi.PlanRequest;
import java.io.IOException;
import java.io.PrintStream;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Optional;

/** A printer of the times that operations would take on a network. */
final class SimulatedBench {
  private static final String COLUMNS = "%12s %12s %9s %8s | %12s %11s %11s | %-38s %s";
  private static final String STEP_COLUMNS = "%9s %9s %12s %12s %11s %11s";

  private final SimulateOptions simulation;
  private final BenchOptions options;
  private final BackendProvider provider;
  private final Settings settings;
  private final boolean json;
  private final PrintStream out;

  /**
   * Creates a printer.
   *
   * @param simulation the ranks and the network
   * @param options the operations and sizes
   * @param provider the backend whose algorithms are simulated
   * @param settings the settings of the ranks
   * @param json whether each row is printed as a JSON object
   * @param out the stream to print to
   */
  SimulatedBench(
      SimulateOptions simulation,
      BenchOptions options,
      BackendProvider provider,
      Settings settings,
      boolean json,
      PrintStream out) {
    this.simulation = simulation;
    this.options = options;
    this.provider = provider;
    this.settings = settings;
    this.json = json;
    this.out = out;
  }

  /**
   * Prints a row for each number of ranks, operation and size, or for each number of ranks one of
   * training.
   *
   * @throws IllegalArgumentException if an option or the file is wrong
   * @throws IOException if the file cannot be read
   */
  void run() throws IOException {
    Path file = simulation.requireNetwork();
    Network read = NetworkFile.read(file);
    Network network = options.graph ? read.inGraph() : read;
    List<SimulatedJob> jobs = new ArrayList<>();
    for (int ranks : simulation.ranks) {
      jobs.add(SimulatedJob.of(ranks, network));
    }
    Long gradients = simulation.gradients;
    if (simulation.store) {
      new StoreTable(json, out).print(jobs, file);
    } else if (gradients == null) {
      operations(jobs, file);
    } else {
      training(
          jobs,
          new TrainingStep(gradients, simulation.bucket, simulation.compute.toNanos() / 1e9),
          file);
    }
  }

  private void operations(List<SimulatedJob> jobs, Path file) {
    List<Long> sizes = BenchOptions.sizes(options.minBytes, options.maxBytes, options.stepFactor);
    boolean all = options.ops.contains("all");
    List<BenchOp> ops =
        all
            ? List.of(BenchOp.values())
            : options.ops.stream().map(BenchOp::ofLabel).distinct().toList();
    for (BenchOp op : ops) {
      for (SimulatedJob job : jobs) {
        boolean first = true;
        for (long bytes : op.sizes(sizes, job.ranks(), options.elementType())) {
          Optional<OperationPlan> plan = plan(op, bytes, job);
          if (plan.isEmpty() && !all) {
            throw noPlan(op);
          }
          if (plan.isPresent()) {
            if (first && !json) {
              title(op, job, file);
            }
            first = false;
            row(op, bytes, job, plan.get());
          }
        }
      }
    }
  }

  private Optional<OperationPlan> plan(BenchOp op, long bytes, SimulatedJob job) {
    return provider.plan(request(op, bytes, job));
  }

  private PlanRequest request(BenchOp op, long bytes, SimulatedJob job) {
    int each = job.network().hostRanks();
    return new PlanRequest(
        op.type(), bytes, job.hosts(), each, job.network().hostCores(), settings);
  }

  private IllegalArgumentException noPlan(BenchOp op) {
    return new IllegalArgumentException(
        "backend '" + options.backend + "' does not state the steps of " + op.label());
  }

  private void title(BenchOp op, SimulatedJob job, Path file) {
    out.printf(
        Locale.ROOT,
        "# %s, %s, backend %s, simulated on %s%n",
        op.label(),
        job.describe(),
        options.backend,
        file);
    out.printf(
        Locale.ROOT,
        "#" + COLUMNS + "%n",
        "size",
        "count",
        "type",
        "redop",
        "time",
        "algbw",
        "busbw",
        "path",
        "bound by");
    out.printf(
        Locale.ROOT,
        "#" + COLUMNS + "%n",
        "(B)",
        "(elements)",
        "",
        "",
        "(us)",
        "(GB/s)",
        "(GB/s)",
        "",
        "(share)");
  }

  private void row(BenchOp op, long bytes, SimulatedJob job, OperationPlan plan) {
    Cost cost = CostModel.cost(request(op, bytes, job), plan, job.network());
    double micros = cost.seconds() * 1e6;
    double algorithm = micros > 0 ? bytes / micros / 1e3 : 0;
    double bus = algorithm * op.busFactor(job.ranks());
    long count = op.count(bytes, job.ranks(), options.elementType());
    String type = op.hasSizes() ? options.elementType().label() : "none";
    String redop = op.reduces() ? options.redop : "none";
    double share = cost.share(cost.bound());
    if (json) {
      out.printf(
          Locale.ROOT,
          "{\"op\":\"%s\",\"backend\":\"%s\",\"ranks\":%d,\"hosts\":%d,\"bytes\":%d,\"count\":%d,"
              + "\"dtype\":\"%s\",\"redop\":\"%s\",\"time_us\":%.3f,\"algbw_gbps\":%.6f,"
              + "\"busbw_gbps\":%.6f,\"path\":\"%s\",\"bound\":\"%s\",\"share\":%.3f}%n",
          op.label(),
          options.backend,
          job.ranks(),
          job.hosts(),
          bytes,
          count,
          type,
          redop,
          micros,
          algorithm,
          bus,
          plan.path(),
          cost.bound().label(),
          share);
    } else {
      out.printf(
          Locale.ROOT,
          " " + COLUMNS + "%n",
          bytes,
          count,
          type,
          redop,
          BenchTable.digits(micros),
          BenchTable.digits(algorithm),
          BenchTable.digits(bus),
          plan.path(),
          micros > 0
              ? String.format(Locale.ROOT, "%s %.0f %%", cost.bound().label(), share * 100)
              : "nothing");
    }
  }

  private void training(List<SimulatedJob> jobs, TrainingStep step, Path file) {
    if (!json) {
      out.printf(
          Locale.ROOT,
          "# training, %d bytes of gradients in buckets of %d, %s ms of compute, backend %s,"
              + " simulated on %s%n",
          step.gradients(),
          step.bucket(),
          BenchTable.digits(step.compute() * 1e3),
          options.backend,
          file);
      out.printf(
          Locale.ROOT,
          "#" + STEP_COLUMNS + "%n",
          "ranks",
          "hosts",
          "step (ms)",
          "waits (ms)",
          "efficiency",
          "speedup");
    }
    for (SimulatedJob job : jobs) {
      double seconds = step.seconds(bytes -> reduction(bytes, job));
      double efficiency = seconds == 0 ? 1 : step.compute() / seconds;
      String waits = BenchTable.digits((seconds - step.compute()) * 1e3);
      if (json) {
        out.printf(
            Locale.ROOT,
            "{\"ranks\":%d,\"hosts\":%d,\"step_ms\":%.3f,\"waits_ms\":%s,\"efficiency\":%.4f,"
                + "\"speedup\":%.3f}%n",
            job.ranks(),
            job.hosts(),
            seconds * 1e3,
            waits,
            efficiency,
            efficiency * job.ranks());
      } else {
        out.printf(
            Locale.ROOT,
            " " + STEP_COLUMNS + "%n",
            job.ranks(),
            job.hosts(),
            BenchTable.digits(seconds * 1e3),
            waits,
            String.format(Locale.ROOT, "%.0f %%", efficiency * 100),
            BenchTable.digits(efficiency * job.ranks()));
      }
    }
  }

  private double reduction(long bytes, SimulatedJob job) {
    PlanRequest request = request(BenchOp.ALL_REDUCE, bytes, job);
    return provider
        .plan(request)
        .map(plan -> CostModel.cost(request, plan, job.network()).seconds())
        .orElseThrow(() -> noPlan(BenchOp.ALL_REDUCE));
  }
}
