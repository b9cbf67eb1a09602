import dev.tutti.Store;
import dev.tutti.aeron.AeronStore;
import dev.tutti.store.HashStore;
import dev.tutti.store.file.FileStore;
import dev.tutti.store.tcp.TcpStore;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.Callable;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;

/**
 * Times a server, or a store of this process, with Tutti's clients, as LibtorchStoreBench does with
 * libtorch's: each client is a thread with its own store.
 *
 * <p>Arguments: tcp, aeron, hash or file, PORT (for a store of this process, any number), LABEL,
 * operations and numbers of clients, the last two as comma-separated lists. set, get, add and wait
 * run for a second after 200 ms of warm-up, and each client uses its own key; a set run ends with
 * an add. wake measures how long after a set the last client that waits for the key continues;
 * wake-virtual does the same with virtual threads. meet measures how long ranks take to open their
 * stores, publish a key each, read the keys of all ranks and pass a barrier. list measures a call
 * of each client, all at the same time, that reads 1000 keys of 160 bytes.
 */
public class StoreClients {
  private static final byte[] VALUE = new byte[8];
  private static final Duration LIMIT = Duration.ofSeconds(60);
  private static final int WAKE_ROUNDS = 41;

  private final String kind;
  private final int port;
  private final String label;
  private final Store own;
  private boolean quiet;

  private StoreClients(String kind, int port, String label) {
    this.kind = kind;
    this.port = port;
    this.label = label;
    own =
        switch (kind) {
          case "hash" -> new HashStore(LIMIT);
          case "file" ->
              new FileStore(
                  Path.of(System.getProperty("java.io.tmpdir"), "tutti-" + port), 1, LIMIT);
          default -> null;
        };
  }

  public static void main(String[] args) throws Exception {
    StoreClients clients = new StoreClients(args[0], Integer.parseInt(args[1]), args[2]);
    List<String> ops = List.of(args[3].split(",", -1));
    for (String number : args[4].split(",", -1)) {
      // Lets the compilers finish the code that follows.
      clients.quiet = true;
      for (String op : ops) {
        if (!op.equals("meet")) {
          clients.measure(op, Integer.parseInt(number));
        }
      }
      clients.quiet = false;
      for (String op : ops) {
        clients.measure(op, Integer.parseInt(number));
      }
    }
  }

  private Store open() {
    return switch (kind) {
      case "aeron" -> new AeronStore("127.0.0.1", port);
      case "tcp" -> new TcpStore("127.0.0.1", port);
      default -> own.duplicate();
    };
  }

  private void measure(String op, int clients) throws Exception {
    switch (op) {
      case "wake", "wake-virtual" -> wake(op, clients);
      case "meet" -> meet(clients);
      case "list" -> list(clients);
      default -> calls(op, clients);
    }
  }

  private interface Body<T> {
    T run(int index) throws Exception;
  }

  private static <T> List<FutureTask<T>> start(int threads, Body<T> body) {
    return start(Thread.ofPlatform().daemon(), threads, body);
  }

  private static <T> List<FutureTask<T>> start(Thread.Builder kind, int threads, Body<T> body) {
    List<FutureTask<T>> all = new ArrayList<>();
    for (int i = 0; i < threads; i++) {
      int index = i;
      Callable<T> call = () -> body.run(index);
      all.add(new FutureTask<>(call));
      kind.start(all.get(i));
    }
    return all;
  }

  private static <T> T result(FutureTask<T> task) throws Exception {
    return task.get(LIMIT.toSeconds(), TimeUnit.SECONDS);
  }

  private void calls(String op, int clients) throws Exception {
    long[] starts = new long[clients];
    long[] ends = new long[clients];
    CyclicBarrier ready = new CyclicBarrier(clients);
    List<FutureTask<long[]>> tasks =
        start(
            clients,
            client -> {
              try (Store store = open()) {
                String key = "bench/" + label + "/" + op + "/" + clients + "/" + client;
                if (!op.equals("add")) {
                  store.set(key, VALUE);
                }
                run(store, op, key, 200_000_000L, new long[1 << 17]);
                ready.await();
                long[] own = new long[Math.max(1 << 16, (1 << 22) / clients)];
                starts[client] = System.nanoTime();
                int calls = run(store, op, key, 1_000_000_000L, own);
                if (op.equals("set")) {
                  store.add(key + "/end", 1);
                }
                ends[client] = System.nanoTime();
                return Arrays.copyOf(own, calls);
              }
            });
    List<long[]> samples = new ArrayList<>();
    for (FutureTask<long[]> task : tasks) {
      samples.add(result(task));
    }
    long[] all = samples.stream().flatMapToLong(Arrays::stream).toArray();
    double seconds =
        (Arrays.stream(ends).max().orElseThrow() - Arrays.stream(starts).min().orElseThrow()) / 1e9;
    print(op, clients, all, all.length / seconds);
  }

  private static int run(Store store, String op, String key, long nanos, long[] samples) {
    long start = System.nanoTime();
    long before = start;
    int calls = 0;
    while (before - start < nanos && calls < samples.length) {
      switch (op) {
        case "set" -> store.set(key, VALUE);
        case "get" -> store.get(key);
        case "add" -> store.add(key, 1);
        default -> store.await(List.of(key));
      }
      long after = System.nanoTime();
      samples[calls++] = after - before;
      before = after;
    }
    return calls;
  }

  private void wake(String op, int waiters) throws Exception {
    Thread.Builder kind =
        op.equals("wake-virtual") ? Thread.ofVirtual() : Thread.ofPlatform().daemon();
    String prefix = op + "/" + label + "/" + waiters + "/" + quiet + "/";
    long[] set = new long[WAKE_ROUNDS];
    CyclicBarrier ready = new CyclicBarrier(waiters + 1);
    List<FutureTask<long[]>> tasks =
        start(
            kind,
            waiters,
            waiter -> {
              try (Store store = open()) {
                long[] woken = new long[WAKE_ROUNDS];
                for (int round = 0; round < WAKE_ROUNDS; round++) {
                  ready.await();
                  store.await(List.of(prefix + round), LIMIT);
                  woken[round] = System.nanoTime();
                }
                return woken;
              }
            });
    try (Store store = open()) {
      for (int round = 0; round < WAKE_ROUNDS; round++) {
        ready.await();
        Thread.sleep(20); // all are waiting
        set[round] = System.nanoTime();
        store.set(prefix + round, VALUE);
      }
    }
    long[] last = new long[WAKE_ROUNDS];
    for (FutureTask<long[]> task : tasks) {
      long[] woken = result(task);
      for (int round = 0; round < WAKE_ROUNDS; round++) {
        last[round] = Math.max(last[round], woken[round] - set[round]);
      }
    }
    print(op, waiters, last, 0);
  }

  private void meet(int ranks) throws Exception {
    String prefix = "meet/" + label + "/" + ranks + "/";
    List<String> keys = new ArrayList<>();
    for (int rank = 0; rank < ranks; rank++) {
      keys.add(prefix + rank);
    }
    long start = System.nanoTime();
    List<FutureTask<Boolean>> tasks =
        start(
            ranks,
            rank -> {
              try (Store store = open()) {
                store.set(keys.get(rank), VALUE);
                store.multiGet(keys, LIMIT);
                store.barrier(prefix, ranks, LIMIT);
                return true;
              }
            });
    for (FutureTask<Boolean> task : tasks) {
      result(task);
    }
    print("meet", ranks, new long[] {System.nanoTime() - start}, 0);
  }

  private void list(int clients) throws Exception {
    List<String> keys = new ArrayList<>();
    for (int i = 0; i < 1000; i++) {
      keys.add("list/" + label + "/" + i);
    }
    CyclicBarrier ready = new CyclicBarrier(clients);
    List<FutureTask<long[]>> tasks =
        start(
            clients,
            client -> {
              try (Store store = open()) {
                for (int i = client; i < keys.size(); i += clients) {
                  store.set(keys.get(i), new byte[160]);
                }
                long[] times = new long[WAKE_ROUNDS];
                for (int round = 0; round < times.length; round++) {
                  ready.await();
                  long start = System.nanoTime();
                  store.multiGet(keys, LIMIT);
                  times[round] = System.nanoTime() - start;
                }
                return times;
              }
            });
    List<long[]> samples = new ArrayList<>();
    for (FutureTask<long[]> task : tasks) {
      samples.add(result(task));
    }
    print("list", clients, samples.stream().flatMapToLong(Arrays::stream).toArray(), 0);
  }

  private void print(String op, int clients, long[] samples, double perSecond) {
    if (quiet) {
      return;
    }
    Arrays.sort(samples);
    System.out.printf(
        Locale.ROOT,
        "{\"op\":\"%s\",\"server\":\"%s\",\"clients\":%d,\"time_us_p50\":%.1f,"
            + "\"time_us_p99\":%.1f,\"ops_per_s\":%.0f}%n",
        op,
        label,
        clients,
        samples[samples.length / 2] / 1e3,
        samples[(int) (samples.length * 0.99)] / 1e3,
        perSecond);
  }
}
