package dev.tutti.cli;

import dev.tutti.Settings;
import dev.tutti.Store;
import dev.tutti.store.FileStore;
import dev.tutti.store.HashStore;
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
import java.util.concurrent.Callable;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;

/** Measures one kind of store, served in this process, with clients that are threads of it. */
final class StoreBench {
  private static final Duration LIMIT = Duration.ofSeconds(60);
  private static final byte[] VALUE = new byte[8];
  private static final int MOST_SAMPLES = 1 << 20;
  private static final List<String> KINDS = List.of("tcp", "aeron", "hash", "file");
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
   * @param settings of the stores
   * @param time how long each row is measured
   * @param json whether each row is a JSON object
   * @param out where rows are printed
   */
  StoreBench(String kind, Settings settings, Duration time, boolean json, PrintStream out) {
    this.kind = kind;
    this.settings = settings;
    this.time = time;
    this.json = json;
    this.out = out;
  }

  /** Opens a handle for one client. */
  private interface Opener {
    Store open();
  }

  /**
   * Measures, and prints a row for each operation and number of clients.
   *
   * @throws IllegalArgumentException if there is no such store
   */
  void run() throws IOException, InterruptedException {
    if (!KINDS.contains(kind)) {
      throw new IllegalArgumentException(
          "--store must be one of " + String.join(", ", KINDS) + ", not '" + kind + "'");
    }
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

  private void measure(Opener stores, String op, int clients) throws InterruptedException {
    CyclicBarrier ready = new CyclicBarrier(clients);
    long start = System.nanoTime();
    List<long[]> samples =
        all(
            clients,
            client -> {
              try (Store store = stores.open()) {
                String key = op + "/" + clients + "/" + client;
                if (!op.equals("add")) {
                  store.set(key, VALUE);
                }
                calls(store, op, key, time.toNanos() / 4);
                ready.await(LIMIT.toSeconds(), TimeUnit.SECONDS);
                return calls(store, op, key, time.toNanos());
              }
            });
    long[] sorted = samples.stream().flatMapToLong(Arrays::stream).sorted().toArray();
    double perSecond = sorted.length / (time.toNanos() / 1e9);
    if (sorted.length == 0) {
      throw new LaunchException(
          1,
          "no call ended in " + TimeUnit.NANOSECONDS.toMillis(System.nanoTime() - start) + " ms");
    }
    row(op, clients, sorted[sorted.length / 2], sorted[(int) (sorted.length * 0.99)], perSecond);
  }

  private static long[] calls(Store store, String op, String key, long nanos) {
    long[] samples = new long[1024];
    int count = 0;
    long start = System.nanoTime();
    for (long before = start; before - start < nanos && count < MOST_SAMPLES; ) {
      switch (op) {
        case "set" -> store.set(key, VALUE);
        case "get" -> store.get(key);
        case "add" -> store.add(key, 1);
        default -> store.wait(List.of(key));
      }
      long after = System.nanoTime();
      if (count == samples.length) {
        samples = Arrays.copyOf(samples, 2 * count);
      }
      samples[count++] = after - before;
      before = after;
    }
    return Arrays.copyOf(samples, count);
  }

  /**
   * Times how ranks meet: each opens a store, publishes a key, reads those of all, and waits for
   * all.
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
          "{\"store\":\"%s\",\"op\":\"%s\",\"clients\":%d,\"time_us_p50\":%.1f,"
              + "\"time_us_p99\":%.1f,\"ops_per_s\":%.0f}%n",
          kind,
          op,
          clients,
          p50 / 1e3,
          p99 / 1e3,
          perSecond);
    } else {
      out.printf(
          Locale.ROOT,
          "%-10s %8d %12.1f %12.1f %12.0f%n",
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

  /** Runs a body on as many threads, and returns what each returned. */
  private static <T> List<T> all(int threads, Body<T> body) throws InterruptedException {
    List<FutureTask<T>> tasks = new ArrayList<>();
    for (int i = 0; i < threads; i++) {
      int index = i;
      Callable<T> call = () -> body.run(index);
      FutureTask<T> task = new FutureTask<>(call);
      tasks.add(task);
      Thread.ofPlatform().daemon().name("bench-" + i).start(task);
    }
    List<T> results = new ArrayList<>();
    for (FutureTask<T> task : tasks) {
      try {
        results.add(task.get());
      } catch (ExecutionException e) {
        throw new LaunchException(1, "a client failed: " + e.getCause(), e);
      }
    }
    return results;
  }
}
