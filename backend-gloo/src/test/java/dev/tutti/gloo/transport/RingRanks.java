package dev.tutti.gloo.transport;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.gloo.TestContexts;
import dev.tutti.gloo.transport.ring.RingMemory;
import dev.tutti.gloo.transport.ring.RingWriter;
import dev.tutti.spi.BackendContext;
import dev.tutti.store.HashStore;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.net.InetAddress;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.FutureTask;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;

/**
 * Base class for tests of a group in which some ranks exchange messages through rings that the
 * tests can see and break, and all other pairs through sockets.
 */
abstract class RingRanks {
  static final int RING = 4096;

  final Rings memory;
  final BlockingQueue<Throwable> failures = new LinkedBlockingQueue<>();
  final List<Transport> transports = new ArrayList<>();
  private final int size;
  private final int[] sharing;

  /** Lets the first and the last rank share memory. */
  RingRanks(int size) {
    this(size, 0, size - 1);
  }

  /**
   * Lets some ranks share memory.
   *
   * @param sharing these ranks, in ascending order
   */
  RingRanks(int size, int... sharing) {
    this.size = size;
    this.sharing = sharing;
    memory = new Rings(sharing.length);
  }

  static final class Rings implements RingMemory {
    private final int count;
    private final MemorySegment all;

    Rings() {
      this(2);
    }

    Rings(int count) {
      this.count = count;
      all = Arena.ofAuto().allocate(Math.max(1, offset(count, 0)), 128);
    }

    private long offset(int from, int to) {
      return (long) LINE * count + ((long) count * from + to) * (HEADER + RING);
    }

    @Override
    public MemorySegment sleep(int rank) {
      return all.asSlice((long) LINE * rank, LINE);
    }

    @Override
    public MemorySegment ring(int from, int to) {
      return all.asSlice(offset(from, to), HEADER + RING);
    }

    /** Returns how many bytes the first (0) or the second (1) of two ranks has written. */
    long written(int from) {
      return ring(from, 1 - from).get(ValueLayout.JAVA_LONG, RingWriter.TAIL);
    }
  }

  private Transport transport(HashStore store, int rank) throws Exception {
    BackendContext context =
        TestContexts.of(
            rank, size, store, Duration.ofSeconds(60), (cause, blamed) -> failures.add(cause));
    Transport transport =
        new TransportRendezvous(context, InetAddress.ofLiteral("127.0.0.1"), false, false)
            .connect(Duration.ZERO);
    if (Arrays.binarySearch(sharing, rank) >= 0) {
      transport.share(sharing, memory, store, System.nanoTime() + Duration.ofSeconds(60).toNanos());
    }
    return transport;
  }

  @BeforeEach
  void connect() throws Exception {
    HashStore store = new HashStore();
    List<FutureTask<Transport>> others = new ArrayList<>();
    for (int r = 1; r < size; r++) {
      int rank = r;
      FutureTask<Transport> other = new FutureTask<>(() -> transport(store, rank));
      Thread.ofPlatform().daemon().start(other);
      others.add(other);
    }
    transports.add(transport(store, 0));
    for (FutureTask<Transport> other : others) {
      transports.add(other.get(60, TimeUnit.SECONDS));
    }
  }

  @AfterEach
  void close() {
    transports.forEach(Transport::close);
  }

  static MemorySegment filled(long bytes, int value) {
    MemorySegment segment = Arena.ofAuto().allocate(Math.max(1, bytes));
    segment.fill((byte) value);
    return segment;
  }

  static void assertSucceeds(TestOperation operation) {
    assertThat(operation.parkUntilDone(operation.deadlineNanos())).isTrue();
    assertThat(operation.cause()).isNull();
  }
}
