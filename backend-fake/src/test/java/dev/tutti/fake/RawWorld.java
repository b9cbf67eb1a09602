package dev.tutti.fake;

import static org.assertj.core.api.Assertions.catchThrowable;

import dev.tutti.OpType;
import dev.tutti.Settings;
import dev.tutti.Store;
import dev.tutti.fake.simulation.Simulation;
import dev.tutti.spi.Backend;
import dev.tutti.spi.BackendContext;
import dev.tutti.spi.BackendProvider;
import dev.tutti.spi.Time;
import dev.tutti.store.HashStore;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.stream.IntStream;

/** A world that runs backends on threads, without groups. */
final class RawWorld {
  static final Duration TIMEOUT = Duration.ofMinutes(4);

  private RawWorld() {}

  /** The code that a rank runs. */
  interface Body<T> {
    T run(Rank rank) throws Exception;
  }

  /** The code that a rank runs, without a result. */
  interface Action {
    void run(Rank rank) throws Exception;
  }

  /** One rank. */
  static final class Rank {
    final int rank;
    final int size;
    final Backend backend;

    /** The failures outside operations: blamed rank and cause. */
    final ConcurrentHashMap<Integer, Throwable> heard;

    private final Time time;
    private long sequence;

    Rank(
        int rank,
        int size,
        Backend backend,
        ConcurrentHashMap<Integer, Throwable> heard,
        Time time) {
      this.time = time;
      this.rank = rank;
      this.size = size;
      this.backend = backend;
      this.heard = heard;
    }

    TestOperation op(OpType type) {
      return op(type, TIMEOUT);
    }

    TestOperation op(OpType type, Duration timeout) {
      return new TestOperation(type, ++sequence, timeout, time);
    }
  }

  static void run(int size, Action body) {
    run(size, new ThreadedProvider(), body);
  }

  static void run(int size, BackendProvider provider, Action body) {
    List<Throwable> failures =
        collect(
            size,
            provider,
            rank -> {
              body.run(rank);
              return true;
            },
            new ArrayList<>());
    for (Throwable failure : failures) {
      if (failure != null) {
        AssertionError error = new AssertionError("rank failed: " + failure, failure);
        failures.stream().filter(other -> other != null).forEach(error::addSuppressed);
        throw error;
      }
    }
  }

  /** Returns what the body of each rank threw, or null. */
  static List<Throwable> failures(int size, BackendProvider provider, Action body) {
    return collect(
        size,
        provider,
        rank -> {
          body.run(rank);
          return true;
        },
        new ArrayList<>());
  }

  static <T> List<Throwable> collect(
      int size, BackendProvider provider, Body<T> body, List<T> results) {
    ExecutorService executor = Executors.newFixedThreadPool(size);
    CyclicBarrier created = new CyclicBarrier(size);
    try (HashStore store = new HashStore(TIMEOUT)) {
      List<Callable<T>> tasks =
          IntStream.range(0, size)
              .mapToObj(
                  rank -> (Callable<T>) () -> runRank(rank, size, provider, store, created, body))
              .toList();
      List<Throwable> failures = new ArrayList<>();
      for (Future<T> future : executor.invokeAll(tasks, TIMEOUT.toSeconds(), TimeUnit.SECONDS)) {
        if (future.state() == Future.State.SUCCESS) {
          results.add(future.resultNow());
          failures.add(null);
        } else {
          results.add(null);
          failures.add(
              future.state() == Future.State.FAILED
                  ? future.exceptionNow()
                  : new AssertionError("rank hung"));
        }
      }
      return failures;
    } catch (InterruptedException e) {
      throw new AssertionError(e);
    } finally {
      executor.shutdownNow();
    }
  }

  private static <T> T runRank(
      int rank,
      int size,
      BackendProvider provider,
      Store store,
      CyclicBarrier created,
      Body<T> body)
      throws Exception {
    ConcurrentHashMap<Integer, Throwable> heard = new ConcurrentHashMap<>();
    try (Backend backend = provider.create(context(rank, size, store, TIMEOUT, heard))) {
      // A mismatch is found half a second after the first rank has called.
      created.await(TIMEOUT.toSeconds(), TimeUnit.SECONDS);
      return body.run(new Rank(rank, size, CallByName.of(backend), heard, Time.SYSTEM));
    }
  }

  /** Returns what the body of each rank threw, or null; called in a simulation. */
  static List<Throwable> simulated(int size, BackendProvider provider, Action body)
      throws Exception {
    CountDownLatch created = new CountDownLatch(size);
    return Simulation.ranks(
        size,
        Simulation.store(),
        provider,
        (options, rank) ->
            catchThrowable(
                () -> {
                  ConcurrentHashMap<Integer, Throwable> heard = new ConcurrentHashMap<>();
                  Store store = options.store().orElseThrow();
                  try (Backend backend =
                      provider.create(
                          context(rank, size, store, TIMEOUT, heard, Simulation.time()))) {
                    Simulation.endTogether(created);
                    body.run(
                        new Rank(rank, size, CallByName.of(backend), heard, Simulation.time()));
                  }
                }));
  }

  static BackendContext context(
      int rank,
      int size,
      Store store,
      Duration timeout,
      ConcurrentHashMap<Integer, Throwable> heard) {
    return context(rank, size, store, timeout, heard, Time.SYSTEM);
  }

  private static BackendContext context(
      int rank,
      int size,
      Store store,
      Duration timeout,
      ConcurrentHashMap<Integer, Throwable> heard,
      Time time) {
    return BackendContext.builder("test", rank, size, store, timeout)
        .settings(Settings.ofEnvironment(java.util.Map.of()))
        .time(time)
        .onFailure((cause, failedRank) -> heard.putIfAbsent(failedRank, cause))
        .build();
  }
}
