package dev.tutti.cli.bench;

import dev.tutti.Settings;
import dev.tutti.Store;
import dev.tutti.cli.process.LaunchException;
import dev.tutti.cli.store.StoreKind;
import dev.tutti.store.HashStore;
import dev.tutti.store.file.FileStore;
import java.io.IOException;
import java.io.PrintStream;
import java.net.InetAddress;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.CompletionService;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorCompletionService;
import java.util.concurrent.TimeUnit;

/**
 * A measurement of one kind of store, served in this process, whose clients are threads of this
 * process.
 */
final class StoreBench {
  private static final Duration LIMIT = Duration.ofMinutes(5);
  private static final byte[] VALUE = new byte[8];
  private static final int MOST_SAMPLES = 1 << 20;
  static final List<String> KINDS = List.of("tcp", "aeron", "hash", "file");
  private static final List<Integer> CLIENTS = List.of(1, 8, 64);
  private static final List<Integer> RANKS = List.of(8, 64);
  private static final List<String> OPS = List.of("set", "get", "add", "wait");

  private final String kind;
  private final Settings settings;
  private final Duration time;
  private final boolean json;
  private final PrintStream out;

  /**
   * Creates a measurement.
   *
   * @param kind tcp, aeron, hash or file
   * @param settings the settings of the stores
   * @param time how long each row is measured
   * @param json whether each row is printed as a JSON object
   * @param out the stream to print rows to
   * @throws IllegalArgumentException if there is no such store
   */
  StoreBench(String kind, Settings settings, Duration time, boolean json, PrintStream out) {
    if (!KINDS.contains(kind)) {
      throw new IllegalArgumentException(
          "--store must be one of " + String.join(", ", KINDS) + ", not '" + kind + "'");
    }
    this.kind = kind;
    this.settings = settings;
    this.time = time;
    this.json = json;
    this.out = out;
  }

  /** An opener of a handle for one client. */
  interface Opener {
    Store open();
  }

  /** Measures, and prints a row for each operation and number of clients. */
  void run() throws IOException, InterruptedException {
    switch (kind) {
      case "hash" -> {
        try (HashStore store = new HashStore(LIMIT)) {
          rows(store::duplicate);
        }
      }
      case "file" -> {
        Path folder = Files.createTempDirectory("tutti-bench-");
        Path file = folder.resolve("store");
        try (FileStore store = new FileStore(file, 1)) {
          rows(store::duplicate);
        } finally {
          Files.deleteIfExists(file);
          Files.delete(folder);
        }
      }
      default -> {
        StoreKind served = StoreKind.of(kind);
        InetAddress here = InetAddress.getLoopbackAddress();
        try (StoreKind.Served server = served.serve(here, 0, settings)) {
          rows(() -> served.connect(here.getHostAddress(), server.port(), LIMIT, settings));
        }
      }
    }
  }

  private void rows(Opener stores) throws InterruptedException {
    if (!json) {
      out.println("# store " + kind + ", clients are threads of this process, values of 8 bytes");
      out.printf(
          Locale.ROOT, "%-10s %8s %12s %12s %12s%n", "op", "clients", "p50 us", "p99 us", "ops/s");
    }
    for (String op : OPS) {
      for (int clients : CLIENTS) {
        measure(stores, op, clients);
      }
    }
    for (int ranks : RANKS) {
      rendezvous(stores, ranks);
    }
  }

  /**
   * Measures an operation, and prints a row.
   *
   * @throws LaunchException describing the first failure, if a client failed
   */
  void measure(Opener stores, String op, int clients) throws InterruptedException {
    CyclicBarrier ready = new CyclicBarrier(clients);
    long start = System.nanoTime();
    List<Calls> all =
        all(
            clients,
            client -> {
              try (Store store = stores.open()) {
                String key = op + "/" + clients + "/" + client;
                if (!op.equals("add")) {
                  store.set(key, VALUE);
                }
                calls(store, op, key, time.toNanos() / 4, MOST_SAMPLES);
                ready.await(LIMIT.toSeconds(), TimeUnit.SECONDS);
                return calls(store, op, key, time.toNanos(), MOST_SAMPLES);
              }
            });
    long[] sorted =
        all.stream().flatMapToLong(calls -> Arrays.stream(calls.nanos)).sorted().toArray();
    if (sorted.length == 0) {
      throw new LaunchException(
          1,
          "no call completed within "
              + TimeUnit.NANOSECONDS.toMillis(System.nanoTime() - start)
              + " ms");
    }
    row(
        op,
        clients,
        sorted[sorted.length / 2],
        sorted[(int) (sorted.length * 0.99)],
        perSecond(all));
  }

  /**
   * The calls of one client.
   *
   * @param nanos the times of its last calls
   * @param count the number of all its calls
   * @param start when the first call started
   * @param end when the last call ended
   */
  @SuppressWarnings("ArrayRecordComponent")
  record Calls(long[] nanos, long count, long start, long end) {}

  /** Returns the rate of all clients' calls per second, from the first start to the last end. */
  static double perSecond(List<Calls> all) {
    long count = 0;
    long start = Long.MAX_VALUE;
    long end = Long.MIN_VALUE;
    for (Calls calls : all) {
      count += calls.count;
      start = Math.min(start, calls.start);
      end = Math.max(end, calls.end);
    }
    return count / ((end - start) / 1e9);
  }

  /**
   * Calls an operation repeatedly for some time.
   *
   * @param store the store
   * @param op the operation
   * @param key the key of the value
   * @param nanos how long to call
   * @param most the maximum number of times to keep
   */
  static Calls calls(Store store, String op, String key, long nanos, int most) {
    long[] samples = new long[Math.min(1024, most)];
    int slot = 0;
    long count = 0;
    long start = System.nanoTime();
    long before = start;
    while (before - start < nanos) {
      switch (op) {
        case "set" -> store.set(key, VALUE);
        case "get" -> store.get(key);
        case "add" -> store.add(key, 1);
        default -> store.await(List.of(key));
      }
      long after = System.nanoTime();
      if (slot == samples.length) {
        if (slot < most) {
          samples = Arrays.copyOf(samples, Math.min(2 * slot, most));
        } else {
          slot = 0;
        }
      }
      samples[slot++] = after - before;
      count++;
      before = after;
    }
    long[] kept = count < samples.length ? Arrays.copyOf(samples, slot) : samples;
    return new Calls(kept, count, start, before);
  }

  /**
   * Times how ranks rendezvous: each opens a store, publishes a key, reads those of all, and waits
   * for all.
   */
  private void rendezvous(Opener stores, int ranks) throws InterruptedException {
    List<String> keys = new ArrayList<>();
    for (int rank = 0; rank < ranks; rank++) {
      keys.add("meet/" + ranks + "/" + rank);
    }
    long start = System.nanoTime();
    all(
        ranks,
        rank -> {
          try (Store store = stores.open()) {
            store.set(keys.get(rank), VALUE);
            store.multiGet(keys, LIMIT);
            store.barrier("met/" + ranks, ranks, LIMIT);
            return true;
          }
        });
    long nanos = System.nanoTime() - start;
    row("rendezvous", ranks, nanos, nanos, ranks / (nanos / 1e9));
  }

  private void row(String op, int clients, long p50, long p99, double perSecond) {
    if (json) {
      out.printf(
          Locale.ROOT,
          "{\"store\":\"%s\",\"op\":\"%s\",\"clients\":%d,\"time_us_p50\":%.2f,"
              + "\"time_us_p99\":%.2f,\"ops_per_s\":%.0f}%n",
          kind,
          op,
          clients,
          p50 / 1e3,
          p99 / 1e3,
          perSecond);
    } else {
      out.printf(
          Locale.ROOT,
          "%-10s %8d %12.2f %12.2f %12.0f%n",
          op,
          clients,
          p50 / 1e3,
          p99 / 1e3,
          perSecond);
    }
  }

  private interface Body<T> {
    T run(int index) throws Exception;
  }

  /**
   * Runs a body on the given number of threads, and returns their results, or throws the first
   * failure.
   */
  private static <T> List<T> all(int threads, Body<T> body) throws InterruptedException {
    CompletionService<T> done =
        new ExecutorCompletionService<>(Thread.ofPlatform().daemon().name("bench-", 0)::start);
    for (int i = 0; i < threads; i++) {
      int index = i;
      done.submit(() -> body.run(index));
    }
    List<T> results = new ArrayList<>();
    for (int i = 0; i < threads; i++) {
      try {
        results.add(done.take().get());
      } catch (ExecutionException e) {
        throw new LaunchException(1, "a client failed: " + e.getCause(), e);
      }
    }
    return results;
  }
}
