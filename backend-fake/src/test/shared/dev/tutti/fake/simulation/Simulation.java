package dev.tutti.fake.simulation;

import dev.tutti.CollectiveException;
import dev.tutti.GroupListener;
import dev.tutti.GroupOptions;
import dev.tutti.ProcessGroup;
import dev.tutti.Settings;
import dev.tutti.Store;
import dev.tutti.TuttiException;
import dev.tutti.spi.BackendProvider;
import dev.tutti.spi.Time;
import dev.tutti.store.HashStore;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.function.BooleanSupplier;
import java.util.function.Supplier;

/**
 * A simulated process that runs a test, and, as threads of the test, the ranks of jobs. Its store,
 * unlike that of a {@link SimulatedWorld}, answers without delay, so that times are exact.
 */
public final class Simulation {
  /** A test. */
  public interface Body {
    void run() throws Throwable;
  }

  /** What a rank runs with the options to join. */
  public interface RankBody<T> {
    T run(GroupOptions options, int rank) throws Exception;
  }

  /** What a rank runs in its group. */
  public interface GroupBody<T> {
    T run(ProcessGroup group) throws Exception;
  }

  private Simulation() {}

  /** Runs a test on the only process of a simulation, and returns its end and its trace. */
  static SimulatedProgram.Outcome run(long seed, Body body) throws Throwable {
    SimulatedProgram.Outcome outcome = SimulatedProgram.run(seed, _ -> body.run());
    Throwable failure = outcome.failure();
    if (failure != null) {
      throw failure;
    }
    return outcome;
  }

  /** Returns the time of the simulation that runs the calling thread. */
  public static Time time() {
    return SimulatedProcess.current().time();
  }

  /** Returns how much time has passed since the start of the simulation. */
  public static Duration now() {
    return Duration.ofNanos(time().nanoTime());
  }

  /** Starts a thread. */
  public static Thread start(String name, Runnable body) {
    return time().start(name, body);
  }

  /** Waits for a condition, which is looked at each millisecond. */
  public static void until(BooleanSupplier condition) {
    while (!condition.getAsBoolean()) {
      SimulatedWorld.sleep(Duration.ofMillis(1));
    }
  }

  /** Waits until a group has failed, and returns the failure. */
  public static CollectiveException failure(ProcessGroup group) throws InterruptedException {
    CountDownLatch failed = new CountDownLatch(1);
    group.addListener(
        new GroupListener() {
          @Override
          public void failed(TuttiException cause) {
            failed.countDown();
          }
        });
    if (group.failure().isEmpty()) {
      failed.await();
    }
    return (CollectiveException) group.failure().orElseThrow();
  }

  /** Waits until as many ranks have come to their end as a latch counts. */
  public static void endTogether(CountDownLatch ended) throws InterruptedException {
    ended.countDown();
    ended.await();
  }

  /** Creates a store that answers at once. */
  public static HashStore store() {
    return new HashStore(Duration.ofMinutes(1), time());
  }

  /** Returns the options with which a rank joins: a minute for each call, shipped settings. */
  public static GroupOptions options(int rank, int size, Store store, BackendProvider provider) {
    return GroupOptions.DEFAULT
        .withStore(store)
        .withRank(rank)
        .withSize(size)
        .withProvider(provider)
        .withTime(time())
        .withSettings(Settings.ofEnvironment(Map.of()))
        .withTimeout(Duration.ofMinutes(1));
  }

  /** Returns options with a setting. */
  public static GroupOptions with(GroupOptions options, String setting, String value) {
    return options.withSettings(Settings.ofEnvironment(Map.of(setting, value)));
  }

  /** Runs a body on a thread per rank; returns the results in rank order. */
  public static <T> List<T> ranks(int size, Store store, BackendProvider provider, RankBody<T> body)
      throws Exception {
    List<Supplier<T>> results = new ArrayList<>();
    CountDownLatch running = new CountDownLatch(size);
    for (int i = 0; i < size; i++) {
      int rank = i;
      results.add(null);
      Thread _ =
          start(
              "rank-" + rank,
              () -> {
                results.set(rank, resultOf(body, options(rank, size, store, provider), rank));
                running.countDown();
              });
    }
    running.await();
    return results.stream().map(Supplier::get).toList();
  }

  private static <T> Supplier<T> resultOf(RankBody<T> body, GroupOptions options, int rank) {
    try {
      T result = body.run(options, rank);
      return () -> result;
    } catch (ProcessGone e) {
      throw e;
    } catch (Throwable e) {
      return () -> {
        throw new AssertionError("rank " + rank + " failed: " + e, e);
      };
    }
  }

  /** Joins, runs once all have joined, and closes once all have run. */
  public static <T> List<T> groups(
      int size, Store store, BackendProvider provider, GroupBody<T> body) throws Exception {
    CountDownLatch joined = new CountDownLatch(size);
    CountDownLatch ended = new CountDownLatch(size);
    return ranks(
        size,
        store,
        provider,
        (options, rank) -> {
          try (ProcessGroup group = ProcessGroup.init(options)) {
            endTogether(joined);
            try {
              return body.run(group);
            } finally {
              endTogether(ended);
            }
          }
        });
  }
}
