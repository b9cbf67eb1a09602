import dev.tutti.Store;
import dev.tutti.store.TcpStore;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.CyclicBarrier;

/**
 * Times a TCPStore server with Tutti's clients, as LibtorchStoreBench does with libtorch's: each
 * client is a thread with a store of its own, on a key of its own, for a second after 200 ms of
 * warm-up; a set run ends with an add. Arguments: PORT LABEL CLIENTS...
 */
public class StoreClients {
  private static final byte[] VALUE = new byte[8];

  public static void main(String[] args) throws Exception {
    int port = Integer.parseInt(args[0]);
    for (int i = 2; i < args.length; i++) {
      for (String op : List.of("set", "get", "add", "wait")) {
        measure(port, args[1], Integer.parseInt(args[i]), op);
      }
    }
  }

  private static void measure(int port, String label, int clients, String op) throws Exception {
    long[][] samples = new long[clients][];
    long[] starts = new long[clients];
    long[] ends = new long[clients];
    CyclicBarrier ready = new CyclicBarrier(clients);
    Thread[] threads = new Thread[clients];
    for (int c = 0; c < clients; c++) {
      int client = c;
      threads[c] =
          Thread.ofPlatform()
              .start(
                  () -> {
                    try (Store store = new TcpStore("127.0.0.1", port)) {
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
                      samples[client] = Arrays.copyOf(own, calls);
                    } catch (Exception e) {
                      throw new IllegalStateException(e);
                    }
                  });
    }
    for (Thread thread : threads) {
      thread.join(Duration.ofSeconds(60));
    }
    long[] all = Arrays.stream(samples).flatMapToLong(Arrays::stream).sorted().toArray();
    double seconds =
        (Arrays.stream(ends).max().orElseThrow() - Arrays.stream(starts).min().orElseThrow()) / 1e9;
    System.out.printf(
        Locale.ROOT,
        "{\"op\":\"%s\",\"server\":\"%s\",\"clients\":%d,\"time_us_p50\":%.1f,"
            + "\"time_us_p99\":%.1f,\"ops_per_s\":%.0f}%n",
        op,
        label,
        clients,
        all[all.length / 2] / 1e3,
        all[(int) (all.length * 0.99)] / 1e3,
        all.length / seconds);
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
        default -> store.wait(List.of(key));
      }
      long after = System.nanoTime();
      samples[calls++] = after - before;
      before = after;
    }
    return calls;
  }
}
