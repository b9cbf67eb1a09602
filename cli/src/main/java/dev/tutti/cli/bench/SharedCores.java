package dev.tutti.cli.bench;

import dev.tutti.cli.simulate.Shares;
import dev.tutti.spi.Time;
import dev.tutti.store.net.Loopback;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.net.InetSocketAddress;
import java.net.StandardSocketOptions;
import java.nio.ByteBuffer;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * A probe of what cores share: how much longer threads of this process take for the same bytes if
 * more of them work at once.
 */
final class SharedCores {
  private static final List<Integer> SIZES = List.of(64 << 10, 1 << 20, 16 << 20);
  private static final long SLICE_NANOS = 60_000_000;
  private static final int MOST_ROUNDS = 5_000;
  private static final int CHUNK = 256 << 10;

  private final int threads;
  private final int bytes;
  private volatile boolean over;

  private SharedCores(int threads, int bytes) {
    this.threads = threads;
    this.bytes = bytes;
  }

  /** What a thread does again and again. */
  private interface Round {
    void run(int number) throws IOException;
  }

  /** Returns how copies of bytes that another thread has just written slow each other down. */
  static Shares ofMemory(int cores) throws InterruptedException {
    return shares(cores, SharedCores::copies);
  }

  /** Returns how threads slow each other down that send to the next one over loopback. */
  static Shares ofSockets(int cores) throws InterruptedException {
    return shares(cores, SharedCores::messages);
  }

  private interface Probe {
    double seconds(SharedCores cores) throws IOException, InterruptedException;
  }

  private static Shares shares(int cores, Probe probe) throws InterruptedException {
    times(2, probe); // compiles
    List<Double> first = times(2, probe);
    List<Double> shares = new ArrayList<>(List.of(1.0));
    for (int threads = 4; threads <= cores; threads *= 2) {
      List<Double> times = times(threads, probe);
      double[] slower = new double[times.size()];
      for (int i = 0; i < slower.length; i++) {
        slower[i] = times.get(i) / first.get(i);
      }
      Arrays.sort(slower);
      shares.add(Math.max(1, slower[slower.length / 2]));
    }
    return new Shares(shares);
  }

  private static List<Double> times(int threads, Probe probe) throws InterruptedException {
    List<Double> times = new ArrayList<>();
    for (int bytes : SIZES) {
      try {
        times.add(probe.seconds(new SharedCores(threads, bytes)));
      } catch (IOException e) {
        throw new IllegalStateException("loopback failed", e);
      }
    }
    return times;
  }

  private double copies() throws InterruptedException {
    try (Arena arena = Arena.ofShared()) {
      List<List<MemorySegment>> both = List.of(allocate(arena), allocate(arena));
      return quartile(
          thread ->
              number -> {
                MemorySegment from = both.get(number & 1).get((thread + 1) % threads);
                both.get(1 - (number & 1)).get(thread).copyFrom(from);
              });
    }
  }

  private List<MemorySegment> allocate(Arena arena) {
    List<MemorySegment> all = new ArrayList<>();
    for (int i = 0; i < threads; i++) {
      all.add(arena.allocate(bytes, 4096).fill((byte) i));
    }
    return all;
  }

  private double messages() throws IOException, InterruptedException {
    List<SocketChannel> out = new ArrayList<>();
    List<SocketChannel> in = new ArrayList<>();
    try (ServerSocketChannel listener = ServerSocketChannel.open();
        Arena arena = Arena.ofShared()) {
      listener.bind(new InetSocketAddress(Loopback.host(), 0));
      for (int i = 0; i < threads; i++) {
        out.add(ready(SocketChannel.open(listener.getLocalAddress())));
        in.add(ready(listener.accept()));
      }
      return quartile(
          thread -> {
            ByteBuffer sent = arena.allocate(bytes, 4096).asByteBuffer();
            ByteBuffer received = arena.allocate(bytes, 4096).asByteBuffer();
            return _ -> exchange(out.get((thread + 1) % threads), sent, in.get(thread), received);
          });
    } finally {
      for (SocketChannel end : out) {
        end.close();
      }
      for (SocketChannel end : in) {
        end.close();
      }
    }
  }

  private static SocketChannel ready(SocketChannel end) throws IOException {
    end.setOption(StandardSocketOptions.TCP_NODELAY, true);
    end.configureBlocking(false);
    return end;
  }

  private void exchange(SocketChannel to, ByteBuffer sent, SocketChannel from, ByteBuffer received)
      throws IOException {
    sent.clear();
    received.clear();
    while ((sent.hasRemaining() || received.hasRemaining()) && !over) {
      if (sent.hasRemaining()) {
        sent.limit(Math.min(bytes, sent.position() + CHUNK));
        to.write(sent);
        sent.limit(bytes);
      }
      if (received.hasRemaining() && from.read(received) < 0) {
        return;
      }
    }
  }

  private interface Rounds {
    Round of(int thread);
  }

  /** Returns the lower quartile of the times of the first thread's rounds, in seconds. */
  private double quartile(Rounds rounds) throws InterruptedException {
    AtomicInteger ready = new AtomicInteger();
    List<Callable<long[]>> tasks = new ArrayList<>();
    for (int i = 0; i < threads; i++) {
      int thread = i;
      tasks.add(() -> times(thread, rounds.of(thread), ready));
    }
    try (ExecutorService all = Executors.newFixedThreadPool(threads)) {
      List<Future<long[]>> results = all.invokeAll(tasks);
      for (Future<long[]> result : results) {
        result.get();
      }
      long[] times = results.getFirst().get();
      Arrays.sort(times);
      return times[times.length / 4] / 1e9;
    } catch (ExecutionException e) {
      throw new IllegalStateException("a probe failed", e);
    }
  }

  private long[] times(int thread, Round round, AtomicInteger ready) throws IOException {
    long[] nanos = new long[MOST_ROUNDS];
    ready.incrementAndGet();
    while (ready.get() < threads) {
      Thread.onSpinWait();
    }
    long start = Time.SYSTEM.nanoTime();
    long before = start;
    int count = 0;
    while (!over && count < MOST_ROUNDS && (thread > 0 || before - start < SLICE_NANOS)) {
      round.run(count);
      long now = Time.SYSTEM.nanoTime();
      nanos[count++] = now - before;
      before = now;
    }
    if (thread == 0) {
      over = true;
    }
    return Arrays.copyOf(nanos, count);
  }
}
