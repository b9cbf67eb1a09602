import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.StandardSocketOptions;
import java.nio.ByteBuffer;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.FutureTask;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * Times what threads of one process do at the same time, to show what cores share: each copies
 * bytes of its own; each copies bytes that another one has just written; each sends bytes to the
 * next one over loopback while it receives as many.
 *
 * <p>Arguments: numbers of threads. Prints a JSON object for each kind, number and size: the median
 * time in µs of a thread for the bytes, and for a round of all threads where they wait.
 */
public class SharedCores {
  private static final long[] SIZES = {
    64, 1 << 10, 1 << 14, 1 << 16, 1 << 18, 1 << 20, 1 << 22, 1 << 24, 1 << 26
  };
  private static final long SLICE_NANOS = 60_000_000L;
  private static final int MOST = 20_000;

  private final int threads;
  private final long bytes;
  private final AtomicInteger arrived = new AtomicInteger();
  private volatile boolean over;

  private SharedCores(int threads, long bytes) {
    this.threads = threads;
    this.bytes = bytes;
  }

  private interface Round {
    void run(int round) throws Exception;
  }

  private interface Rounds {
    Round of(int thread) throws Exception;
  }

  public static void main(String[] args) throws Exception {
    for (int pass = 0; pass < 2; pass++) { // the first one warms up
      for (String number : pass == 0 ? new String[] {"2"} : args) {
        for (long bytes : SIZES) {
          SharedCores one = new SharedCores(Integer.parseInt(number), bytes);
          one.own(pass > 0);
          one.others(pass > 0);
          one.sockets(pass > 0);
        }
      }
    }
  }

  private void own(boolean shown) throws Exception {
    try (Arena arena = Arena.ofShared()) {
      MemorySegment[] from = allocate(arena);
      MemorySegment[] to = allocate(arena);
      measure("own", shown, thread -> _ -> to[thread].copyFrom(from[thread]));
    }
  }

  private void others(boolean shown) throws Exception {
    try (Arena arena = Arena.ofShared()) {
      MemorySegment[][] both = {allocate(arena), allocate(arena)};
      measure(
          "others",
          shown,
          thread ->
              round -> {
                MemorySegment[] from = both[round & 1];
                both[1 - (round & 1)][thread].copyFrom(from[(thread + 1) % threads]);
                meet(round);
              });
    }
  }

  private MemorySegment[] allocate(Arena arena) {
    MemorySegment[] all = new MemorySegment[threads];
    for (int i = 0; i < threads; i++) {
      all[i] = arena.allocate(bytes, 4096).fill((byte) i);
    }
    return all;
  }

  /** Waits until all threads have come. */
  private void meet(int round) {
    arrived.incrementAndGet();
    while (arrived.get() < (round + 1) * threads && !over) {
      Thread.onSpinWait();
    }
  }

  private void sockets(boolean shown) throws Exception {
    SocketChannel[] next = new SocketChannel[threads];
    SocketChannel[] previous = new SocketChannel[threads];
    try (ServerSocketChannel listener = ServerSocketChannel.open();
        Arena arena = Arena.ofShared()) {
      listener.bind(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0));
      for (int i = 0; i < threads; i++) {
        next[i] = SocketChannel.open(listener.getLocalAddress());
        previous[(i + 1) % threads] = listener.accept();
        for (SocketChannel end : List.of(next[i], previous[(i + 1) % threads])) {
          end.setOption(StandardSocketOptions.TCP_NODELAY, true);
          end.configureBlocking(false);
        }
      }
      measure(
          "sockets",
          shown,
          thread -> {
            ByteBuffer out = arena.allocate(bytes, 4096).asByteBuffer();
            ByteBuffer in = arena.allocate(bytes, 4096).asByteBuffer();
            return _ -> {
              out.clear();
              in.clear();
              while ((out.hasRemaining() || in.hasRemaining()) && !over) {
                write(next[thread], out);
                if (in.hasRemaining() && previous[thread].read(in) < 0) {
                  return;
                }
              }
            };
          });
    } finally {
      for (int i = 0; i < threads; i++) {
        next[i].close();
        previous[i].close();
      }
    }
  }

  private static void write(SocketChannel to, ByteBuffer out) throws Exception {
    if (out.hasRemaining()) {
      int end = out.limit();
      out.limit(Math.min(end, out.position() + (256 << 10)));
      to.write(out);
      out.limit(end);
    }
  }

  private void measure(String kind, boolean shown, Rounds rounds) throws Exception {
    over = false;
    arrived.set(0);
    AtomicInteger ready = new AtomicInteger();
    List<FutureTask<long[]>> tasks = new ArrayList<>();
    for (int i = 0; i < threads; i++) {
      int thread = i;
      tasks.add(
          new FutureTask<>(
              () -> {
                Round round = rounds.of(thread);
                long[] nanos = new long[MOST];
                ready.incrementAndGet();
                while (ready.get() < threads) {
                  Thread.onSpinWait();
                }
                long start = System.nanoTime();
                long before = start;
                int count = 0;
                while (!over && count < MOST && (thread > 0 || before - start < SLICE_NANOS)) {
                  round.run(count);
                  long now = System.nanoTime();
                  nanos[count++] = now - before;
                  before = now;
                }
                if (thread == 0) {
                  over = true;
                }
                return Arrays.copyOf(nanos, count);
              }));
      Thread.ofPlatform().daemon().start(tasks.getLast());
    }
    long[] first = tasks.getFirst().get();
    for (FutureTask<long[]> task : tasks) {
      task.get();
    }
    Arrays.sort(first);
    if (shown) {
      System.out.printf(
          "{\"cores\":\"%s\",\"threads\":%d,\"bytes\":%d,\"time_us_p50\":%.3f,\"rounds\":%d}%n",
          kind, threads, bytes, first[first.length / 2] / 1e3, first.length);
    }
  }
}
