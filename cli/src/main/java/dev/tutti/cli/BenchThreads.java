package dev.tutti.cli;

import dev.tutti.GroupOptions;
import dev.tutti.ProcessGroup;
import dev.tutti.Settings;
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
    GroupOptions join =
        GroupOptions.defaults()
            .withBackend(options.backend)
            .withTimeout(options.timeout)
            .withSettings(settings)
            .withStore(store.duplicate())
            .withRank(rank)
            .withSize(ranks);
    try (ProcessGroup group = ProcessGroup.init(join)) {
      new BenchRank(group, options, rows).run();
      group.barrier();
    }
  }
}
