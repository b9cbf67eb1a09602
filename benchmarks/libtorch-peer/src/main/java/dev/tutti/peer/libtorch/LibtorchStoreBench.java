package dev.tutti.peer.libtorch;

import java.io.IOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.Set;
import java.util.concurrent.BrokenBarrierException;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.bytedeco.javacpp.BytePointer;
import org.bytedeco.pytorch.ByteVector;
import org.bytedeco.pytorch.StringVector;
import org.bytedeco.pytorch.TCPStore;

/**
 * Serves libtorch's TCPStore, or times a TCPStore server with libtorch's clients.
 *
 * <p>{@code server [--host H] [--port P] [--legacy]} prints {@code PORT n} and serves until
 * standard input ends.
 *
 * <p>{@code client --port P [--host H] [--clients 1,8,64] [--ops set,get,add,wait,set_get]
 * [--value-bytes 8] [--duration-ms 1000] [--label NAME]} runs every operation with every number of
 * clients for the given duration, after 200 ms of warm-up. Each client is a thread with its own
 * connection. The program prints one JSON object per line: latency over all calls of all clients,
 * and {@code ops_per_s} from the first start to the last end. {@code wake} instead measures how
 * long after a set the last client continues, while all clients wait for the key.
 *
 * <p>{@code compare --port P --other-port P [--host H] [--clients 1,8,64] [--ops set,get,add,wait]
 * [--value-bytes 8] [--slices 21] [--slice-ms 150]} does the same with two servers in turns, slice
 * by slice, so that changes on the machine affect both. It prints the medians over the slices, and
 * the median and quartiles of the ratio of a call's time with the other server to its time with the
 * first, pair by pair.
 *
 * <p>Every client works on its own key. {@code set} has no reply, so a client ends its run with one
 * {@code add}, whose reply shows that the server has processed the rest. {@code get} takes two
 * round trips in libtorch's client (wait, get); {@code add} and {@code wait} (on an existing key)
 * take one; {@code set_get} is one sample of both calls.
 */
public final class LibtorchStoreBench {
  private static final long WARM_UP_NANOS = TimeUnit.MILLISECONDS.toNanos(200);
  private static final int TIMEOUT_MILLIS = 30_000;
  private static final int WAKE_ROUNDS = 41;

  private LibtorchStoreBench() {}

  /**
   * Runs as a server or as clients.
   *
   * @param args {@code server} or {@code client}, then options
   */
  public static void main(String[] args) {
    if (args.length == 0) {
      throw new IllegalArgumentException(
          "expected server, client or compare as the first argument");
    }
    Flags flags = new Flags(Arrays.copyOfRange(args, 1, args.length), Set.of("legacy"));
    int status = PeerWatchdog.EXIT_ERROR;
    try {
      switch (args[0]) {
        case "server" -> serve(flags);
        case "client" -> measure(flags);
        case "compare" -> compare(flags);
        default ->
            throw new IllegalArgumentException(
                "expected server, client or compare, got " + args[0]);
      }
      status = 0;
    } catch (Exception | LinkageError e) {
      new PeerOutput().line("ERROR 0 " + PeerOutput.messageOf(e));
    }
    Runtime.getRuntime().halt(status);
  }

  private static void serve(Flags flags) throws IOException {
    String host = flags.text("host", "127.0.0.1");
    int port = flags.number("port", 0);
    boolean legacy = flags.isSet("legacy");
    flags.rejectUnread();
    LibtorchLoader.load();
    TCPStore store = PeerStores.openTcp(host, port, true, legacy, 0, TIMEOUT_MILLIS);
    new PeerOutput().line("PORT " + PeerStores.port(store));
    while (System.in.read() >= 0) {
      // only the end of the input matters
    }
  }

  private static void measure(Flags flags) throws Exception {
    String host = flags.text("host", "127.0.0.1");
    int port = flags.number("port", 0);
    long[] clientCounts = Flags.numbers(flags.text("clients", "1,8,64"));
    List<String> ops = flags.list("ops", "set,get,add,wait,set_get");
    int valueBytes = flags.number("value-bytes", 8);
    int durationMillis = flags.number("duration-ms", 1000);
    String label = flags.text("label", "libtorch-2.10.0");
    flags.rejectUnread();
    LibtorchLoader.load();
    PeerOutput out = new PeerOutput();
    for (long clients : clientCounts) {
      List<Client> connected = new ArrayList<>();
      for (int i = 0; i < clients; i++) {
        connected.add(new Client(host, port, i, valueBytes));
      }
      for (String op : ops) {
        out.line(
            op.equals("wake")
                ? wakeRow(connected, new Client(host, port, (int) clients, valueBytes), label)
                : row(connected, op, valueBytes, durationMillis, label));
      }
    }
  }

  private static void compare(Flags flags) throws Exception {
    String host = flags.text("host", "127.0.0.1");
    int port = flags.number("port", 0);
    int otherPort = flags.number("other-port", 0);
    long[] clientCounts = Flags.numbers(flags.text("clients", "1,8,64"));
    List<String> ops = flags.list("ops", "set,get,add,wait");
    int valueBytes = flags.number("value-bytes", 8);
    int slices = flags.number("slices", 21);
    int sliceMillis = flags.number("slice-ms", 150);
    flags.rejectUnread();
    LibtorchLoader.load();
    PeerOutput out = new PeerOutput();
    for (long clients : clientCounts) {
      List<Client> first = new ArrayList<>();
      List<Client> other = new ArrayList<>();
      for (int i = 0; i < clients; i++) {
        first.add(new Client(host, port, i, valueBytes));
        other.add(new Client(host, otherPort, i, valueBytes));
      }
      for (String op : ops) {
        out.line(comparison(first, other, op, slices, sliceMillis));
      }
    }
  }

  private static String comparison(
      List<Client> first, List<Client> other, String op, int slices, int sliceMillis)
      throws Exception {
    double[][] times = new double[2][slices];
    double[][] rates = new double[2][slices];
    double[] ratios = new double[slices];
    double[] rateRatios = new double[slices];
    for (int slice = -2; slice < slices; slice++) {
      for (int turn = 0; turn < 2; turn++) {
        // The server that is measured first alternates from slice to slice.
        int side = (turn + slice) & 1;
        List<Run> runs =
            runAll(side == 0 ? first : other, op, TimeUnit.MILLISECONDS.toNanos(sliceMillis));
        if (slice >= 0) {
          times[side][slice] = medianMicros(runs);
          rates[side][slice] = callsPerSecond(runs);
        }
      }
      if (slice >= 0) {
        ratios[slice] = times[1][slice] / times[0][slice];
        rateRatios[slice] = rates[0][slice] / rates[1][slice];
      }
    }
    return String.format(
        Locale.ROOT,
        "{\"op\":\"%s\",\"clients\":%d,\"slices\":%d,\"time_us\":%.2f,\"ops_per_s\":%.0f,"
            + "\"other_time_us\":%.2f,\"other_ops_per_s\":%.0f,\"time_ratio\":%.3f,"
            + "\"time_ratio_q1\":%.3f,\"time_ratio_q3\":%.3f,\"ops_ratio\":%.3f}",
        op,
        first.size(),
        slices,
        quantile(times[0], 0.5),
        quantile(rates[0], 0.5),
        quantile(times[1], 0.5),
        quantile(rates[1], 0.5),
        quantile(ratios, 0.5),
        quantile(ratios, 0.25),
        quantile(ratios, 0.75),
        quantile(rateRatios, 0.5));
  }

  private static double medianMicros(List<Run> runs) {
    long[] nanos = runs.stream().flatMapToLong(run -> Arrays.stream(run.nanos)).toArray();
    Arrays.sort(nanos);
    return nanos[nanos.length / 2] / 1e3;
  }

  private static double callsPerSecond(List<Run> runs) {
    long calls = runs.stream().mapToLong(run -> run.nanos.length).sum();
    long start = runs.stream().mapToLong(run -> run.start).min().orElseThrow();
    long end = runs.stream().mapToLong(run -> run.end).max().orElseThrow();
    return calls / ((end - start) / 1e9);
  }

  private static double quantile(double[] values, double q) {
    double[] sorted = values.clone();
    Arrays.sort(sorted);
    return sorted[(int) (q * (sorted.length - 1))];
  }

  private static String row(
      List<Client> clients, String op, int valueBytes, int durationMillis, String label)
      throws Exception {
    List<Run> runs = runAll(clients, op, TimeUnit.MILLISECONDS.toNanos(durationMillis));
    long[] nanos = runs.stream().flatMapToLong(run -> Arrays.stream(run.nanos)).toArray();
    long start = runs.stream().mapToLong(run -> run.start).min().orElseThrow();
    long end = runs.stream().mapToLong(run -> run.end).max().orElseThrow();
    return String.format(
        Locale.ROOT,
        "{\"op\":\"%s\",\"server\":\"%s\",\"client\":\"libtorch-2.10.0\",\"clients\":%d,\"bytes\":%d,\"calls\":%d,"
            + "%s,\"ops_per_s\":%.0f}",
        op,
        label,
        clients.size(),
        valueBytes,
        nanos.length,
        BenchStatistics.of(nanos).json(),
        nanos.length / ((end - start) / 1e9));
  }

  private static String wakeRow(List<Client> waiters, Client setter, String label)
      throws Exception {
    String prefix = "wake/" + waiters.size() + "/";
    CyclicBarrier ready = new CyclicBarrier(waiters.size() + 1);
    List<FutureTask<long[]>> pending = new ArrayList<>();
    for (Client waiter : waiters) {
      FutureTask<long[]> task =
          new FutureTask<>(
              () -> {
                long[] woken = new long[WAKE_ROUNDS];
                for (int round = 0; round < WAKE_ROUNDS; round++) {
                  StringVector key = new StringVector(new BytePointer(prefix + round));
                  ready.await(TIMEOUT_MILLIS, TimeUnit.MILLISECONDS);
                  waiter.store._wait(key);
                  woken[round] = System.nanoTime();
                }
                return woken;
              });
      Thread thread = new Thread(task, "store-client");
      thread.setDaemon(true);
      thread.start();
      pending.add(task);
    }
    long[] last = new long[WAKE_ROUNDS];
    long[] set = new long[WAKE_ROUNDS];
    for (int round = 0; round < WAKE_ROUNDS; round++) {
      BytePointer key = new BytePointer(prefix + round);
      ready.await(TIMEOUT_MILLIS, TimeUnit.MILLISECONDS);
      Thread.sleep(20); // all are waiting
      set[round] = System.nanoTime();
      setter.store.set(key, setter.value);
    }
    for (FutureTask<long[]> task : pending) {
      long[] woken = task.get(TIMEOUT_MILLIS, TimeUnit.MILLISECONDS);
      for (int round = 0; round < WAKE_ROUNDS; round++) {
        last[round] = Math.max(last[round], woken[round] - set[round]);
      }
    }
    return String.format(
        Locale.ROOT,
        "{\"op\":\"wake\",\"server\":\"%s\",\"clients\":%d,%s,\"ops_per_s\":0}",
        label,
        waiters.size(),
        BenchStatistics.of(last).json());
  }

  private static List<Run> runAll(List<Client> clients, String op, long durationNanos)
      throws InterruptedException, ExecutionException, TimeoutException {
    CyclicBarrier together = new CyclicBarrier(clients.size());
    List<Run> runs = new ArrayList<>();
    List<FutureTask<Run>> pending = new ArrayList<>();
    for (Client client : clients) {
      FutureTask<Run> task = new FutureTask<>(() -> client.run(op, durationNanos, together));
      Thread thread = new Thread(task, "store-client");
      thread.setDaemon(true);
      thread.start();
      pending.add(task);
    }
    long limitNanos = durationNanos + TimeUnit.MILLISECONDS.toNanos(3L * TIMEOUT_MILLIS);
    for (FutureTask<Run> run : pending) {
      runs.add(run.get(limitNanos, TimeUnit.NANOSECONDS));
    }
    return runs;
  }

  /**
   * Calls of one client: durations, and the clock at its first call and after its last reply, in
   * nanoseconds.
   */
  @SuppressWarnings("ArrayRecordComponent")
  private record Run(long[] nanos, long start, long end) {}

  /** One connection with its key and value. */
  private static final class Client {
    private final TCPStore store;
    private final BytePointer key;
    private final BytePointer counter;
    private final StringVector keys;
    private final ByteVector value;

    Client(String host, int port, int number, int valueBytes) {
      store = PeerStores.openTcp(host, port, false, false, 0, TIMEOUT_MILLIS);
      key = new BytePointer("bench/" + number);
      counter = new BytePointer("bench/count/" + number);
      keys = new StringVector(key);
      value = new ByteVector(new byte[valueBytes]);
      store.set(key, value);
      store.add(counter, 0);
    }

    Run run(String op, long durationNanos, CyclicBarrier together)
        throws InterruptedException, BrokenBarrierException, TimeoutException {
      Runnable call = call(op);
      for (long start = System.nanoTime();
          System.nanoTime() - start < Math.min(WARM_UP_NANOS, durationNanos / 5); ) {
        call.run();
      }
      store.add(counter, 1);
      together.await(TIMEOUT_MILLIS, TimeUnit.MILLISECONDS);
      long[] nanos = new long[1 << 16];
      int calls = 0;
      long start = System.nanoTime();
      long before = start;
      while (before - start < durationNanos) {
        call.run();
        long after = System.nanoTime();
        nanos[calls++] = after - before;
        before = after;
        if (calls == nanos.length) {
          nanos = Arrays.copyOf(nanos, calls * 2);
          before = System.nanoTime();
        }
      }
      store.add(counter, 1);
      return new Run(Arrays.copyOf(nanos, calls), start, System.nanoTime());
    }

    private Runnable call(String op) {
      return switch (op) {
        case "set" -> () -> store.set(key, value);
        case "get" -> () -> store.get(key).close();
        case "add" -> () -> store.add(counter, 1);
        case "wait" -> () -> store._wait(keys);
        case "set_get" ->
            () -> {
              store.set(key, value);
              store.get(key).close();
            };
        default ->
            throw new IllegalArgumentException(
                "--ops: expected set, get, add, wait or set_get, got " + op);
      };
    }
  }
}
