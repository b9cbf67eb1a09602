package dev.tutti.gloo;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.tutti.CollectiveException;
import dev.tutti.GroupOptions;
import dev.tutti.ProcessGroup;
import dev.tutti.Settings;
import dev.tutti.Store;
import dev.tutti.spi.BackendProvider;
import dev.tutti.spi.Time;
import dev.tutti.store.HashStore;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;

/** The ranks of a Gloo group, run as threads of this JVM on loopback sockets. */
final class GlooWorld {
  interface Body<T> {
    T run(ProcessGroup group) throws Exception;
  }

  /**
   * The timeout of a group if a test sets no other; a test that waits for it fails by its limit.
   */
  static final Duration TIMEOUT = Duration.ofMinutes(10);

  private static final Duration LIMIT = Duration.ofSeconds(270);

  /*
   * Long enough for spinning to take place, but short because the ranks and other tests share the
   * cores.
   */
  private static final String SPIN = "0.02ms";

  private GlooWorld() {}

  static Settings settings(String... namesAndValues) {
    Settings settings =
        Settings.ofEnvironment(Map.of("TUTTI_CLOSE_TIMEOUT", "500ms"))
            .with(BindAddress.INTERFACE, "lo")
            .with(GlooProvider.SPIN, SPIN);
    for (int i = 0; i < namesAndValues.length; i += 2) {
      settings = settings.with(namesAndValues[i], namesAndValues[i + 1]);
    }
    return settings;
  }

  static GroupOptions options(HashStore store, int rank, int size, Settings settings) {
    return GroupOptions.DEFAULT
        .withStore(store)
        .withRank(rank)
        .withSize(size)
        .withProvider(new GlooProvider())
        .withSettings(settings)
        .withTimeout(TIMEOUT);
  }

  /** Runs a body on all ranks and returns the result of each; throws the first failure. */
  static <T> List<T> run(int size, Body<T> body) throws Exception {
    return run(size, settings(), body);
  }

  static <T> List<T> run(int size, Settings settings, Body<T> body) throws Exception {
    return run(size, settings, new GlooProvider(), body);
  }

  static <T> List<T> run(int size, Settings settings, BackendProvider provider, Body<T> body)
      throws Exception {
    return run(size, settings, provider, LIMIT, body);
  }

  /** Runs a body that takes long where the ranks share few cores with much other work. */
  static <T> List<T> run(
      int size, Settings settings, BackendProvider provider, Duration limit, Body<T> body)
      throws Exception {
    return run(size, settings, provider, Time.SYSTEM, limit, body);
  }

  /** Runs a body in a time of its own. */
  static <T> List<T> run(
      int size, Settings settings, BackendProvider provider, Time time, Body<T> body)
      throws Exception {
    return run(size, settings, provider, time, LIMIT, body);
  }

  private static <T> List<T> run(
      int size,
      Settings settings,
      BackendProvider provider,
      Time time,
      Duration limit,
      Body<T> body)
      throws Exception {
    HashStore store = new HashStore(Store.DEFAULT_TIMEOUT, time);
    return inParallel(
        size,
        limit,
        rank -> {
          GroupOptions options =
              options(store, rank, size, settings).withProvider(provider).withTime(time);
          try (ProcessGroup group = ProcessGroup.init(options)) {
            return body.run(group);
          }
        });
  }

  interface Call {
    void run(ProcessGroup group) throws Exception;
  }

  /**
   * Runs a call on two ranks, and again after one rank has aborted: the call must then fail on
   * both.
   */
  static void failsWhenOneAborts(Call call) throws Exception {
    CountDownLatch through = new CountDownLatch(2);
    CountDownLatch left = new CountDownLatch(1);
    run(
        2,
        group -> {
          call.run(group);
          // The abort would also end the call of a rank that has not left it yet.
          through.countDown();
          assertThat(through.await(TIMEOUT.toSeconds(), TimeUnit.SECONDS)).isTrue();
          group.setTimeout(Duration.ofSeconds(2));
          if (group.rank() == 1) {
            group.abort("enough");
            left.countDown();
          } else {
            assertThat(left.await(TIMEOUT.toSeconds(), TimeUnit.SECONDS)).isTrue();
          }
          assertThatThrownBy(() -> call.run(group)).isInstanceOf(CollectiveException.class);
          return group.rank();
        });
  }

  interface Rank<T> {
    T run(int rank) throws Exception;
  }

  static <T> List<T> inParallel(int size, Rank<T> body) throws Exception {
    return inParallel(size, LIMIT, body);
  }

  static <T> List<T> inParallel(int size, Duration limit, Rank<T> body) throws Exception {
    try (ExecutorService threads = Executors.newFixedThreadPool(size)) {
      List<Callable<T>> calls = new ArrayList<>();
      for (int r = 0; r < size; r++) {
        int rank = r;
        calls.add(() -> body.run(rank));
      }
      List<T> results = new ArrayList<>();
      List<Future<T>> futures = threads.invokeAll(calls, limit.toSeconds(), TimeUnit.SECONDS);
      Throwable failure = null;
      for (Future<T> future : futures) {
        try {
          results.add(future.get());
        } catch (ExecutionException e) {
          if (failure == null) {
            failure = e.getCause();
          } else {
            failure.addSuppressed(e.getCause());
          }
        }
      }
      if (failure instanceof Error error) {
        throw error;
      }
      if (failure instanceof Exception exception) {
        throw exception;
      }
      return results;
    }
  }
}
