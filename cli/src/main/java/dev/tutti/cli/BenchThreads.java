package dev.tutti.cli;

import dev.tutti.ProcessGroup;
import dev.tutti.Settings;
import dev.tutti.spi.BackendProvider;
import dev.tutti.spi.DeviceSession;
import dev.tutti.store.HashStore;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.function.Consumer;
import picocli.CommandLine;

/** Measures between threads of this JVM. */
final class BenchThreads {
  private final int ranks;
  private final Settings settings;
  private final Consumer<BenchRow> rows;

  /**
   * Creates the threads' plan.
   *
   * @param ranks number of ranks
   * @param settings all settings
   * @param rows takes each row as it comes
   */
  BenchThreads(int ranks, Settings settings, Consumer<BenchRow> rows) {
    this.ranks = ranks;
    this.settings = settings;
    this.rows = rows;
  }

  /** Runs to the end and returns 0, or throws what the first rank threw. */
  int run(List<String> arguments) throws InterruptedException {
    BenchOptions options =
        CommandLine.populateCommand(new BenchOptions(), arguments.toArray(String[]::new));
    try (HashStore store = new HashStore(options.timeout);
        ExecutorService threads = Executors.newFixedThreadPool(ranks)) {
      List<Future<?>> done = new ArrayList<>();
      for (int rank = 0; rank < ranks; rank++) {
        int mine = rank;
        done.add(threads.submit(() -> runRank(mine, store, options)));
      }
      for (Future<?> rank : done) {
        rank.get();
      }
      return 0;
    } catch (ExecutionException e) {
      if (e.getCause() instanceof RuntimeException cause) {
        throw cause;
      }
      throw new LaunchException(1, "a rank failed: " + e.getCause(), e);
    }
  }

  private void runRank(int rank, HashStore store, BenchOptions options) {
    BackendProvider provider = BenchDevice.provider(options, settings);
    try (DeviceSession device = BenchDevice.open(provider, rank);
        ProcessGroup group =
            ProcessGroup.init(
                BenchDevice.options(options, provider, device, settings)
                    .withStore(store.duplicate())
                    .withRank(rank)
                    .withSize(ranks))) {
      new BenchRank(group, options, device, rows).run();
      group.barrier();
    }
  }
}
