package dev.tutti.cli.bench;

import dev.tutti.cli.simulate.StoreLoad;
import java.io.PrintStream;
import java.nio.file.Path;
import java.util.List;
import java.util.Locale;

/**
 * A printer of what a store does for jobs that do not exist.
 *
 * @param json whether each row is printed as a JSON object
 * @param out the stream to print to
 */
record StoreTable(boolean json, PrintStream out) {
  private static final String COLUMNS = "%8s %9s %9s %12s %14s %12s %9s %12s";

  /** Prints a row for each job and for each thing that its ranks do. */
  void print(List<SimulatedJob> jobs, Path file) {
    if (!json) {
      out.printf(Locale.ROOT, "# store of all ranks, simulated on %s%n", file);
      row("#", "what", "ranks", "hosts", "calls", "keys", "read", "waiters", "time");
      row("#", "", "", "", "", "", "(B)", "", "(ms)");
    }
    for (SimulatedJob job : jobs) {
      row(job, StoreLoad.joining(job.ranks(), job.network()));
      row(job, StoreLoad.failure(job.ranks(), job.network()));
      row(job, StoreLoad.wake(job.ranks(), job.network()));
      row(job, StoreLoad.call(job.ranks(), job.network()));
    }
  }

  private void row(SimulatedJob job, StoreLoad load) {
    if (json) {
      out.printf(
          Locale.ROOT,
          "{\"what\":\"%s\",\"ranks\":%d,\"hosts\":%d,\"calls\":%.0f,\"keys\":%.0f,"
              + "\"bytes\":%.0f,\"waiters\":%d,\"time_ms\":%.3f}%n",
          load.what(),
          job.ranks(),
          job.hosts(),
          load.calls(),
          load.keys(),
          load.bytes(),
          load.waiters(),
          load.seconds() * 1e3);
    } else {
      row(
          " ",
          load.what(),
          job.ranks(),
          job.hosts(),
          (long) load.calls(),
          (long) load.keys(),
          (long) load.bytes(),
          load.waiters(),
          BenchTable.digits(load.seconds() * 1e3));
    }
  }

  private void row(String first, Object... cells) {
    out.printf(Locale.ROOT, first + COLUMNS + "%n", cells);
  }
}
