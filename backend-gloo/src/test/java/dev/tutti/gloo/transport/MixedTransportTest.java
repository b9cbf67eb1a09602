package dev.tutti.gloo.transport;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.Device;
import dev.tutti.Settings;
import dev.tutti.spi.BackendContext;
import dev.tutti.store.HashStore;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.net.InetAddress;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.FutureTask;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Lets ranks 0 and 2 of three exchange messages through rings, and all others through sockets. */
@Timeout(60)
class MixedTransportTest {
  private static final int[] SHARING = {0, 2};
  private static final int RING = 4096;

  private final Memory memory = new Memory();
  private final BlockingQueue<Throwable> failures = new LinkedBlockingQueue<>();
  private final List<Transport> transports = new ArrayList<>();

  private static final class Memory implements RingMemory {
    private final MemorySegment all = Arena.ofAuto().allocate(2 * (LINE + HEADER + RING), 128);

    @Override
    public MemorySegment sleep(int rank) {
      return all.asSlice((long) LINE * rank, LINE);
    }

    @Override
    public MemorySegment ring(int from, int to) {
      return all.asSlice(2 * LINE + (long) from * (HEADER + RING), HEADER + RING);
    }

    long written(int from) {
      return ring(from, 1 - from).get(ValueLayout.JAVA_LONG, 0);
    }
  }

  private Transport transport(HashStore store, int rank) throws Exception {
    BackendContext context =
        new BackendContext(
            "g",
            rank,
            3,
            List.of(0, 1, 2),
            "cpu",
            Device.CPU,
            store,
            Duration.ofSeconds(20),
            Settings.ofEnvironment(Map.of()),
            (cause, blamed) -> failures.add(cause));
    Transport transport =
        new Rendezvous(context, InetAddress.ofLiteral("127.0.0.1"), false, false)
            .connect(Duration.ZERO);
    if (rank != 1) {
      transport.share(SHARING, memory, Duration.ofSeconds(10));
    }
    return transport;
  }

  @BeforeEach
  void connect() throws Exception {
    HashStore store = new HashStore();
    List<FutureTask<Transport>> others = new ArrayList<>();
    for (int r = 1; r < 3; r++) {
      int rank = r;
      FutureTask<Transport> other = new FutureTask<>(() -> transport(store, rank));
      Thread.ofPlatform().daemon().start(other);
      others.add(other);
    }
    transports.add(transport(store, 0));
    for (FutureTask<Transport> other : others) {
      transports.add(other.get(20, TimeUnit.SECONDS));
    }
  }

  @AfterEach
  void close() {
    transports.forEach(Transport::close);
  }

  private static MemorySegment filled(long bytes, int value) {
    MemorySegment segment = Arena.ofAuto().allocate(bytes);
    segment.fill((byte) value);
    return segment;
  }

  private void exchange(int from, int to, long bytes, int value) {
    MemorySegment in = filled(bytes, 0);
    exchange(from, to, filled(bytes, value), in);
    assertThat(in.mismatch(filled(bytes, value))).isEqualTo(-1);
  }

  private void exchange(int from, int to, MemorySegment out, MemorySegment in) {
    TestOperation receive = TestOperation.seconds(20);
    TestOperation send = TestOperation.seconds(20);
    new UserMessages(transports.get(to)).receive(receive, from, 3, in, in.byteSize());
    new UserMessages(transports.get(from)).send(send, to, 3, out, out.byteSize());
    new UserMessages(transports.get(from)).await(send, send.deadlineNanos());
    new UserMessages(transports.get(to)).await(receive, receive.deadlineNanos());
    assertThat(send.parkUntilDone(send.deadlineNanos())).isTrue();
    assertThat(receive.parkUntilDone(receive.deadlineNanos())).isTrue();
    assertThat(send.cause()).isNull();
    assertThat(receive.cause()).isNull();
  }

  @ParameterizedTest
  @ValueSource(longs = {1, Loans.LEAST_BYTES - 1})
  void messagesTakeTheRingWhereThereIsOne(long bytes) {
    int value = 1;
    for (int round = 0; round < 20; round++) {
      for (int from = 0; from < 3; from++) {
        for (int to = 0; to < 3; to++) {
          if (from != to) {
            exchange(from, to, bytes, value++);
          }
        }
      }
    }
    assertThat(memory.written(0)).isBetween(20 * bytes, 20 * (bytes + 200));
    assertThat(memory.written(1)).isBetween(20 * bytes, 20 * (bytes + 200));
    assertThat(failures).isEmpty();
  }

  @Test
  void alsoAShorterMessageToTheSameAddressMayComeFirst() {
    long[] lengths = {300_000, 3_000_000};
    MemorySegment from = filled(lengths[1], 7);
    MemorySegment to = filled(lengths[1], 0);
    for (long length : lengths) {
      exchange(0, 1, from.asSlice(0, length), to.asSlice(0, length));
    }
    assertThat(to.mismatch(from)).isEqualTo(-1);
  }

  @ParameterizedTest
  @ValueSource(longs = {1, 100_000})
  void membersAreNumberedByTheirPlaces(long bytes) throws Exception {
    Members first = new Members(transports.get(2), new int[] {2, 1});
    Members second = new Members(transports.get(1), new int[] {2, 1});
    assertThat(first.rank()).isZero();
    assertThat(second.rank()).isEqualTo(1);
    assertThat(second.size()).isEqualTo(2);
    assertThat(second.rankInGroup(0)).isEqualTo(2);
    MemorySegment in = filled(bytes, 0);
    TestOperation operation = TestOperation.seconds(20);
    Request receive = second.receive(0, Slot.BROADCAST.of(7), in, 0, bytes);
    first.sendDetached(1, Slot.BROADCAST.of(7), filled(bytes, 5), 0, bytes);
    first.flush();
    second.flush();
    second.await(receive, operation);
    first.awaitSent(operation);
    assertThat(in.mismatch(filled(bytes, 5))).isEqualTo(-1);
    assertThat(memory.written(1)).isZero();
  }
}
