package dev.tutti.runtime.group;

import dev.tutti.GroupOptions;
import dev.tutti.ProcessGroup;
import dev.tutti.Settings;
import dev.tutti.Store;
import dev.tutti.spi.BackendProvider;
import dev.tutti.store.HashStore;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.function.BooleanSupplier;
import java.util.function.UnaryOperator;
import java.util.logging.Level;
import java.util.logging.Logger;

/** A job whose ranks run as threads of a test. */
public final class LocalWorld {
  public interface Body<T> {
    T run(ProcessGroup group) throws Exception;
  }

  public interface RankBody<T> {
    T run(GroupOptions options, int rank) throws Exception;
  }

  private LocalWorld() {}

  /**
   * Joins, runs once all have joined, and closes once all have run; returns the results in rank
   * order.
   */
  static <T> List<T> run(int size, BackendProvider provider, Body<T> body) throws Exception {
    return run(size, new HashStore(), provider, body);
  }

  /** Does the same with a given store. */
  public static <T> List<T> run(int size, Store store, BackendProvider provider, Body<T> body)
      throws Exception {
    return run(size, store, provider, UnaryOperator.identity(), body);
  }

  /** Does the same with a given store and changed options. */
  static <T> List<T> run(
      int size,
      Store store,
      BackendProvider provider,
      UnaryOperator<GroupOptions> change,
      Body<T> body)
      throws Exception {
    CountDownLatch joined = new CountDownLatch(size);
    CountDownLatch ended = new CountDownLatch(size);
    return ranks(
        size,
        store,
        provider,
        (options, rank) -> {
          try (ProcessGroup group = join(change.apply(options), joined)) {
            if (!joined.await(100, TimeUnit.SECONDS)) {
              throw new AssertionError("a rank has not joined");
            }
            T result;
            try {
              result = body.run(group);
            } finally {
              ended.countDown();
            }
            leaveTogether(ended);
            return result;
          }
        });
  }

  /**
   * Waits until as many ranks have come to their end as a latch counts. A rank that leaves earlier
   * takes with it the failure that a thread of it, which may be late, was to report to the others.
   */
  private static void leaveTogether(CountDownLatch ended) throws InterruptedException {
    boolean _ = ended.await(120, TimeUnit.SECONDS);
  }

  /** Counts a rank that has come to its end, and waits for the others before it leaves. */
  public static void endTogether(CountDownLatch ended) throws InterruptedException {
    ended.countDown();
    leaveTogether(ended);
  }

  private static ProcessGroup join(GroupOptions options, CountDownLatch joined) {
    try {
      return ProcessGroup.init(options);
    } finally {
      joined.countDown();
    }
  }

  /** Runs the body on a thread per rank, with the options to join. */
  public static <T> List<T> ranks(int size, Store store, BackendProvider provider, RankBody<T> body)
      throws Exception {
    Settings settings = Settings.ofEnvironment(Map.of("TUTTI_CLOSE_TIMEOUT", "200ms"));
    try (ExecutorService threads = Executors.newFixedThreadPool(size)) {
      List<Callable<T>> calls = new ArrayList<>();
      for (int r = 0; r < size; r++) {
        int rank = r;
        GroupOptions options =
            GroupOptions.DEFAULT
                .withStore(store)
                .withRank(rank)
                .withSize(size)
                .withProvider(provider)
                .withSettings(settings)
                .withTimeout(Duration.ofSeconds(60));
        calls.add(() -> body.run(options, rank));
      }
      List<T> results = new ArrayList<>();
      for (Future<T> future : threads.invokeAll(calls, 240, TimeUnit.SECONDS)) {
        results.add(future.get());
      }
      return results;
    }
  }

  /** Keeps the expected warnings of a class out of the build log. */
  public static Quiet quiet(Class<?> type) {
    Logger logger = Logger.getLogger(type.getName());
    logger.setLevel(Level.OFF);
    return new Quiet(logger);
  }

  /** Ends the silence; holds the logger, which could be garbage-collected otherwise. */
  public record Quiet(Logger logger) implements AutoCloseable {
    @Override
    public void close() {
      logger.setLevel(null);
    }
  }

  /** Runs an action on a thread of its own. */
  public static CompletableFuture<Void> async(Runnable action) {
    return CompletableFuture.runAsync(action, task -> Thread.ofPlatform().daemon().start(task));
  }

  /** Waits for a condition, for at most two minutes. */
  public static void until(String what, BooleanSupplier condition) {
    long limit = System.nanoTime() + TimeUnit.SECONDS.toNanos(120);
    while (!condition.getAsBoolean()) {
      if (System.nanoTime() - limit > 0) {
        throw new AssertionError("waited too long for " + what);
      }
      // Leaves the processor to the threads for which this one waits.
      LockSupport.parkNanos(1_000_000);
    }
  }
}
