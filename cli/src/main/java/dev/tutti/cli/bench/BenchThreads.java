package dev.tutti.cli.bench;

import dev.tutti.ProcessGroup;
import dev.tutti.Settings;
import dev.tutti.cli.process.LaunchException;
import dev.tutti.spi.BackendProvider;
import dev.tutti.spi.DeviceSession;
import dev.tutti.store.HashStore;
import java.util.Objects;
import java.util.concurrent.BrokenBarrierException;
import java.util.concurrent.CompletionService;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorCompletionService;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/** A measurement between threads of this JVM. */
final class BenchThreads {
  private final int ranks;
  private final Settings settings;
  private final Consumer<BenchRow> rows;
  private final CyclicBarrier opened;
  private final AtomicReference<@Nullable Throwable> first = new AtomicReference<>();

  /**
   * Creates a measurement.
   *
   * @param ranks the number of ranks
   * @param settings all settings
   * @param rows receives each row as it is measured
   */
  BenchThreads(int ranks, Settings settings, Consumer<BenchRow> rows) {
    this.ranks = ranks;
    this.settings = settings;
    this.rows = rows;
    this.opened = new CyclicBarrier(ranks);
  }

  /** Runs to the end and returns 0, or throws the exception of the rank that failed first. */
  int run(BenchOptions options) throws InterruptedException {
    try (HashStore store = new HashStore(options.timeout);
        ExecutorService threads = Executors.newFixedThreadPool(ranks)) {
      CompletionService<Void> done = new ExecutorCompletionService<>(threads);
      for (int rank = 0; rank < ranks; rank++) {
        int mine = rank;
        done.submit(() -> runRank(mine, store, options), null);
      }
      for (int rank = 0; rank < ranks; rank++) {
        try {
          done.take().get();
        } catch (ExecutionException e) {
          failed(Objects.requireNonNull(e.getCause()));
          threads.shutdownNow();
        }
      }
    }
    Throwable failure = first.get();
    if (failure instanceof RuntimeException cause) {
      throw cause;
    }
    if (failure != null) {
      throw new LaunchException(1, "a rank failed: " + failure, failure);
    }
    return 0;
  }

  /**
   * Records the first failure; ranks that fail because another one has ended add theirs as
   * suppressed.
   */
  private void failed(Throwable failure) {
    if (!first.compareAndSet(null, failure)) {
      Throwable before = Objects.requireNonNull(first.get());
      if (!before.equals(failure)) {
        before.addSuppressed(failure);
      }
    }
  }

  private void runRank(int rank, HashStore store, BenchOptions options) {
    BackendProvider provider = BenchDevice.provider(options, settings);
    try (DeviceSession device = BenchDevice.open(provider, rank)) {
      awaitOpened();
      try (ProcessGroup group =
          ProcessGroup.init(
              BenchDevice.options(options, provider, device, settings)
                  .withStore(store.duplicate())
                  .withRank(rank)
                  .withSize(ranks))) {
        try {
          new BenchRank(group, options, device, rows).run();
          group.barrier();
        } catch (RuntimeException | Error e) {
          // Must come before the group is closed, which makes the others fail.
          failed(e);
          throw e;
        }
      }
    }
  }

  /** Waits for the devices of all ranks, since an interrupt does not end the setup of a group. */
  private void awaitOpened() {
    try {
      opened.await();
    } catch (InterruptedException | BrokenBarrierException e) {
      throw new LaunchException(1, "another rank cannot open its device", e);
    }
  }
}
