package dev.tutti.gloo.transport;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assumptions.assumeThat;

import dev.tutti.gloo.transport.cma.RemoteMemory;
import dev.tutti.gloo.transport.ring.RingMemory;
import dev.tutti.gloo.transport.ring.RingWriter;
import dev.tutti.spi.PeerLostException;
import dev.tutti.testkit.FreeRounds;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.VarHandle;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.locks.LockSupport;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Lets two transports exchange messages through rings that the test can see and break. */
@Timeout(300)
class RingTransportTest extends RingRanks {
  RingTransportTest() {
    super(2);
  }

  private static long value(MemorySegment segment, long index) {
    return segment.get(ValueLayout.JAVA_BYTE, index);
  }

  private void exchange(long bytes, int value) {
    exchange(bytes, value, true);
  }

  /** Sends and receives; if no thread drives, the waits move no bytes. */
  private void exchange(long bytes, int value, boolean drives) {
    MemorySegment in = filled(bytes, 0);
    TestOperation receive = TestOperation.seconds(100);
    TestOperation send = TestOperation.seconds(100);
    new RawMessages(transports.get(1)).receive(receive, 0, 3, in, bytes);
    new RawMessages(transports.get(0)).send(send, 1, 3, filled(bytes, value), bytes);
    if (drives) {
      new RawMessages(transports.get(0)).await(send, send.deadlineNanos());
      new RawMessages(transports.get(1)).await(receive, receive.deadlineNanos());
    }
    assertSucceeds(send);
    assertSucceeds(receive);
    assertThat(value(in, 0)).isEqualTo(value);
    assertThat(value(in, bytes - 1)).isEqualTo(value);
  }

  /** Neither rank polls: both sleep before each message, and also during it if it is large. */
  @ParameterizedTest
  @CsvSource({"1, 300", "100000, 50"})
  void doorbellsWakeRanksThatSleep(long bytes, int rounds) {
    for (int i = 0; i < rounds; i++) {
      long deadline = System.nanoTime() + 100_000_000_000L;
      for (int rank = 0; rank < 2; rank++) {
        while (memory.sleep(rank).get(ValueLayout.JAVA_LONG, 0) == 0) {
          assertThat(System.nanoTime() - deadline).isNegative();
          LockSupport.parkNanos(100_000);
        }
      }
      exchange(bytes, i % 100, false);
    }
    assertThat(failures).isEmpty();
  }

  @Test
  void messagesUseTheRings() {
    exchange(1000, 7);
    assertThat(memory.ring(0, 1).get(ValueLayout.JAVA_LONG, RingWriter.TAIL))
        .isEqualTo(2 * Header.BYTES + 1000);
    assertThat(memory.ring(1, 0).get(ValueLayout.JAVA_LONG, RingWriter.TAIL))
        .isEqualTo(Header.BYTES);
  }

  /** Lets rank 0 introduce itself with a large message, and waits for the answer. */
  private void awaitLoans() {
    assumeThat(RemoteMemory.isAllowed()).as("native code may be called").isTrue();
    exchange(CmaTransfers.LEAST_BYTES, 3);
    long deadline = System.nanoTime() + 100_000_000_000L;
    while (!mayLend()) {
      assertThat(System.nanoTime() - deadline).as("rank 1 has not answered").isNegative();
      LockSupport.parkNanos(100_000);
    }
  }

  private boolean mayLend() {
    Transport sender = transports.get(0);
    sender.progress.lock.lock();
    try {
      return Objects.requireNonNull(sender.pairs.get(1).connection.transfers()).peerReads;
    } finally {
      sender.progress.lock.unlock();
    }
  }

  @Test
  void largeMessagesAreCopiedFromWhereTheyAre() {
    awaitLoans();
    long there = memory.written(0);
    long back = memory.written(1);
    exchange(CmaTransfers.LEAST_BYTES, 11);
    exchange(20 << 20, 12);
    assertThat(memory.written(0) - there).isEqualTo(2 * Header.BYTES);
    assertThat(memory.written(1) - back).isEqualTo(2 * 2 * Header.BYTES);
    exchange(CmaTransfers.LEAST_BYTES - 1, 13);
    assertThat(memory.written(0) - there)
        .isEqualTo(4 * Header.BYTES + CmaTransfers.LEAST_BYTES - 1);
    exchange(300_000, 14, false);
    assertThat(failures).isEmpty();
  }

  @Test
  void loansKeepTheOrderOfMessages() {
    awaitLoans();
    long[] lengths = {200_000, 10, 0, 100_000, 5000, 70_000};
    List<TestOperation> operations = new ArrayList<>();
    List<MemorySegment> received = new ArrayList<>();
    for (int i = 0; i < lengths.length; i++) {
      received.add(filled(lengths[i], 0));
      operations.add(TestOperation.seconds(100));
      new RawMessages(transports.get(1))
          .receive(operations.getLast(), 0, 6, received.get(i), lengths[i]);
    }
    for (int i = 0; i < lengths.length; i++) {
      operations.add(TestOperation.seconds(100));
      new RawMessages(transports.get(0))
          .send(operations.getLast(), 1, 6, filled(lengths[i], i + 1), lengths[i]);
    }
    for (TestOperation operation : operations) {
      assertSucceeds(operation);
    }
    for (int i = 0; i < lengths.length; i++) {
      if (lengths[i] > 0) {
        assertThat(value(received.get(i), 0)).isEqualTo(i + 1);
        assertThat(value(received.get(i), lengths[i] - 1)).isEqualTo(i + 1);
      }
    }
  }

  private TestOperation send(long slot, MemorySegment segment) {
    TestOperation send = TestOperation.seconds(100);
    new RawMessages(transports.get(0)).send(send, 1, slot, segment, segment.byteSize());
    return send;
  }

  private void receive(long slot, boolean fromAny, long bytes, int expected) {
    MemorySegment in = filled(bytes, 0);
    TestOperation receive = TestOperation.seconds(100);
    RawMessages messages = new RawMessages(transports.get(1));
    if (fromAny) {
      messages.receiveAny(receive, slot, in, bytes);
    } else {
      messages.receive(receive, 0, slot, in, bytes);
    }
    assertThat(messages.await(receive, receive.deadlineNanos())).isTrue();
    assertThat(receive.cause()).isNull();
    assertThat(value(in, 0)).isEqualTo(expected);
    assertThat(value(in, bytes - 1)).isEqualTo(expected);
  }

  @Test
  void offersWaitForTheirReceives() {
    awaitLoans();
    long before = memory.written(0);
    long bytes = CmaTransfers.LEAST_BYTES;
    List<TestOperation> sends = new ArrayList<>();
    for (int i = 0; i < 40; i++) {
      sends.add(send(7 + i % 2, filled(bytes, i)));
    }
    assertThat(memory.written(0) - before).as("nothing but headers").isLessThan(bytes);
    for (int i = 0; i < 20; i++) {
      receive(8, i % 3 == 0, bytes, 2 * i + 1);
    }
    for (int i = 0; i < 20; i++) {
      receive(7, i % 3 == 0, bytes, 2 * i);
    }
    for (TestOperation send : sends) {
      new RawMessages(transports.get(0)).await(send, send.deadlineNanos());
      assertThat(send.isDone()).isTrue();
      assertThat(send.cause()).isNull();
    }
  }

  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void aReceiveOfAnEarlierOfferNeedsNoOtherEvent(boolean fromAny) throws Exception {
    awaitLoans();
    RawMessages messages = new RawMessages(transports.get(1));
    TestOperation other = TestOperation.seconds(100);
    messages.receive(other, 0, 10, filled(1, 0), 1);
    FutureTask<Boolean> waiting =
        new FutureTask<>(() -> messages.await(other, other.deadlineNanos()));
    Thread waiter = Thread.ofPlatform().daemon().start(waiting);
    TestOperation send = send(11, filled(CmaTransfers.LEAST_BYTES, 4));
    awaitAllRead();
    SelectorWaits.await(waiter);
    receive(11, fromAny, CmaTransfers.LEAST_BYTES, 4);
    new RawMessages(transports.get(0)).await(send, send.deadlineNanos());
    assertThat(send.cause()).isNull();
    send(10, filled(1, 5));
    assertThat(waiting.get(60, TimeUnit.SECONDS)).isTrue();
    assertThat(failures).isEmpty();
  }

  /** Waits until rank 1 has read everything that rank 0 wrote. */
  private void awaitAllRead() {
    long deadline = System.nanoTime() + 100_000_000_000L;
    MemorySegment ring = memory.ring(0, 1);
    while (ring.get(ValueLayout.JAVA_LONG, RingWriter.HEAD) != memory.written(0)) {
      assertThat(System.nanoTime() - deadline).isNegative();
      LockSupport.parkNanos(100_000);
    }
  }

  @Test
  void anOfferReachesAReceiveFromAnyRank() {
    awaitLoans();
    long bytes = 3 * CmaTransfers.LEAST_BYTES;
    MemorySegment in = filled(bytes, 0);
    TestOperation receive = TestOperation.seconds(100);
    new RawMessages(transports.get(1)).receiveAny(receive, 9, in, bytes);
    TestOperation send = send(9, filled(bytes, 5));
    new RawMessages(transports.get(1)).await(receive, receive.deadlineNanos());
    new RawMessages(transports.get(0)).await(send, send.deadlineNanos());
    assertThat(receive.cause()).isNull();
    assertThat(receive.rank()).isZero();
    assertThat(value(in, bytes - 1)).isEqualTo(5);
  }

  @Test
  void whatASenderTookBackIsNotReceived() {
    awaitLoans();
    long bytes = 4 * CmaTransfers.LEAST_BYTES;
    MemorySegment lent = filled(bytes, 1);
    TestOperation send = send(4, lent);
    transports.get(0).abort(new IllegalStateException("the sender gave up"));
    assertThat(send.parkUntilDone(send.deadlineNanos())).isTrue();
    lent.fill((byte) 2);
    TestOperation receive = TestOperation.seconds(100);
    MemorySegment in = filled(bytes, 0);
    new RawMessages(transports.get(1)).receive(receive, 0, 4, in, bytes);
    new RawMessages(transports.get(1)).await(receive, receive.deadlineNanos());
    assertThat(receive.cause()).isInstanceOf(PeerLostException.class);
    assertThat(receive.rank()).isZero();
  }

  @Test
  void bytesAreReadOnlyWhileTheNumberIsThere() {
    assumeThat(RemoteMemory.isAllowed()).as("native code may be called").isTrue();
    int self = (int) ProcessHandle.current().pid();
    MemorySegment number = filled(8, 0);
    number.set(ValueLayout.JAVA_LONG, 0, 77);
    MemorySegment bytes = filled(5000, 3);
    MemorySegment in = filled(5000, 0);
    RemoteMemory remote = new RemoteMemory(self, number.address(), 77);
    assumeThat(remote.read(number.address(), in, 0, 0)).as("memory may be read").isTrue();
    assertThat(remote.read(bytes.address() + 10, in, 20, 4000)).isTrue();
    assertThat(value(in, 19)).isZero();
    assertThat(value(in, 20)).isEqualTo(3);
    assertThat(value(in, 4019)).isEqualTo(3);
    assertThat(value(in, 4020)).isZero();
    assertThat(remote.read(8, in, 0, 100)).as("an address that is not there").isFalse();
    number.set(ValueLayout.JAVA_LONG, 0, 78);
    assertThat(remote.read(bytes.address(), in, 0, 100)).isFalse();
  }

  @Test
  void aLoanThatCannotBeReadEndsThePair() throws Exception {
    awaitLoans();
    TestOperation receive = TestOperation.seconds(100);
    new RawMessages(transports.get(1)).receive(receive, 0, 4, filled(100_000, 0), 100_000);
    put(0, Header.LOAN, 4, 100_000, 8);
    new RawMessages(transports.get(1)).await(receive, receive.deadlineNanos());
    assertThat(receive.cause())
        .isInstanceOf(PeerLostException.class)
        .hasMessageContaining("rank 0 lent memory that this process cannot read");
    assertThat(receive.rank()).isZero();
  }

  @ParameterizedTest
  @CsvSource({
    "LOAN, that this rank did not request",
    "OFFER, that this rank did not request",
    "RETURN, returned memory that was not lent to it",
    "READABLE, which has not introduced itself",
    "INTRODUCTION, introduced itself as process"
  })
  void loansOutOfTurnEndThePair(String opcode, String message) throws Exception {
    exchange(16, 1);
    TestOperation receive = TestOperation.seconds(100);
    new RawMessages(transports.get(1)).receive(receive, 0, 4, filled(100_000, 0), 100_000);
    int code = Header.class.getDeclaredField(opcode).getInt(null);
    put(0, code, code == Header.INTRODUCTION ? -7 : 4, 100_000, 8);
    new RawMessages(transports.get(1)).await(receive, receive.deadlineNanos());
    assertThat(receive.cause()).isInstanceOf(PeerLostException.class).hasMessageContaining(message);
  }

  /** Writes a header into the ring of a rank that writes nothing more itself. */
  private void put(int from, int opcode, long slot, long length, long address) {
    MemorySegment ring = memory.ring(from, 1 - from);
    long tail = ring.get(ValueLayout.JAVA_LONG, RingWriter.TAIL);
    long[] words = {Header.BYTES, opcode, slot, address, length, 0};
    for (int i = 0; i < words.length; i++) {
      long at = RingMemory.HEADER + (tail + 8L * i & RING - 1);
      ring.set(ValueLayout.JAVA_LONG, at, words[i]);
    }
    VarHandle.releaseFence();
    ring.set(ValueLayout.JAVA_LONG, RingWriter.TAIL, tail + Header.BYTES);
  }

  @ParameterizedTest
  @ValueSource(longs = {-1, 1L << 40, Long.MIN_VALUE, Long.MAX_VALUE})
  void aTailThatCannotBeEndsThePair(long garbage) throws Exception {
    exchange(10, 1);
    TestOperation receive = TestOperation.seconds(100);
    new RawMessages(transports.get(1)).receive(receive, 0, 4, filled(10, 0), 10);
    memory.ring(0, 1).set(ValueLayout.JAVA_LONG, RingWriter.TAIL, garbage);
    new RawMessages(transports.get(1)).await(receive, receive.deadlineNanos());
    assertThat(receive.cause())
        .isInstanceOf(PeerLostException.class)
        .hasMessageContaining("rank 0 corrupted the shared memory")
        .hasMessageContaining("written " + garbage + " bytes");
    assertThat(receive.rank()).isZero();
  }

  @Test
  void aHeadThatCannotBeEndsThePair() throws Exception {
    receiveAndStop(3 * RING);
    TestOperation send = TestOperation.seconds(100);
    memory.ring(0, 1).set(ValueLayout.JAVA_LONG, RingWriter.HEAD, 5 * RING);
    new RawMessages(transports.get(0)).send(send, 1, 4, filled(3 * RING, 1), 3 * RING);
    new RawMessages(transports.get(0)).await(send, send.deadlineNanos());
    assertThat(send.cause())
        .isInstanceOf(PeerLostException.class)
        .hasMessageContaining("rank 1 corrupted the shared memory")
        .hasMessageContaining("read " + 5 * RING + " bytes");
  }

  /** Lets rank 1 get ready for a message and then stop reading. */
  private void receiveAndStop(long bytes) {
    new RawMessages(transports.get(1))
        .receive(TestOperation.seconds(100), 0, 4, filled(bytes, 0), bytes);
    transports.get(1).stop(new IllegalStateException("stopped by the test"));
  }

  @Test
  void garbageInARingEndsThePair() throws Exception {
    exchange(10, 1);
    TestOperation receive = TestOperation.seconds(100);
    new RawMessages(transports.get(1)).receive(receive, 0, 4, filled(10, 0), 10);
    MemorySegment ring = memory.ring(0, 1);
    long tail = ring.get(ValueLayout.JAVA_LONG, RingWriter.TAIL);
    ring.asSlice(RingMemory.HEADER).fill((byte) 0x55);
    VarHandle.releaseFence();
    ring.set(ValueLayout.JAVA_LONG, RingWriter.TAIL, tail + 48);
    new RawMessages(transports.get(1)).await(receive, receive.deadlineNanos());
    assertThat(receive.cause())
        .isInstanceOf(PeerLostException.class)
        .hasMessageContaining("sent an invalid header");
  }

  @Test
  void aSendThatFindsNoSpaceEndsAtItsDeadline() throws Exception {
    long bytes = 4L * RING;
    receiveAndStop(bytes);
    Request request = transports.get(0).send(1, 4, filled(bytes, 1), 0, bytes);
    assertThatThrownBy(
            () -> transports.get(0).await(request, new TestOperation(Duration.ofMillis(300))))
        .isInstanceOf(TimeoutException.class)
        .hasMessageContaining("send of " + bytes + " bytes to rank 1");
    transports.get(0).abort(new IllegalStateException("over"));
    assertThat(failures).isEmpty();
  }

  @Test
  void whatWasSentBeforeAFarewellArrives() throws Exception {
    for (int i = 0; i < 5; i++) {
      exchange(100, i + 1);
    }
    TestOperation receive = TestOperation.seconds(100);
    MemorySegment in = filled(100, 0);
    new RawMessages(transports.get(1)).receive(receive, 0, 9, in, 100);
    TestOperation send = TestOperation.seconds(100);
    new RawMessages(transports.get(0)).send(send, 1, 9, filled(100, 77), 100);
    assertThat(new RawMessages(transports.get(0)).await(send, send.deadlineNanos())).isTrue();
    transports.get(0).close();
    assertThat(new RawMessages(transports.get(1)).await(receive, receive.deadlineNanos())).isTrue();
    assertThat(receive.cause()).isNull();
    assertThat(value(in, 99)).isEqualTo(77);
    TestOperation next = TestOperation.seconds(100);
    new RawMessages(transports.get(1)).receive(next, 0, 9, in, 100);
    new RawMessages(transports.get(1)).await(next, next.deadlineNanos());
    assertThat(next.cause()).hasMessageContaining("rank 0 closed its group");
    assertThat(failures).isEmpty();
  }

  @Test
  void aReceiveFromAnyRankFailsAtOnceWhenAllHaveLeft() throws Exception {
    transports.get(0).close();
    long deadline = System.nanoTime() + 100_000_000_000L;
    while (transports.get(1).failureOf(0) == null) {
      assertThat(System.nanoTime() - deadline).isNegative();
      LockSupport.parkNanos(100_000);
    }
    TestOperation receive = TestOperation.seconds(100);
    new RawMessages(transports.get(1)).receiveAny(receive, 3, filled(1, 0), 1);
    assertThat(receive.isDone()).isTrue();
    assertThat(receive.cause())
        .isInstanceOf(PeerLostException.class)
        .hasMessageContaining("rank 0 closed its group");
    assertThat(receive.rank()).isZero();
  }

  private void echo(int rank, int count, MemorySegment segment) throws Exception {
    Transport transport = transports.get(rank);
    int peer = 1 - rank;
    long bytes = segment.byteSize();
    long deadline = System.nanoTime() + 100_000_000_000L;
    for (int i = 0; i < count; i++) {
      if (rank == 0) {
        transport.await(transport.send(peer, 5, segment, 0, bytes), deadline);
        transport.await(transport.receive(peer, 5, segment, 0, bytes), deadline);
      } else {
        transport.await(transport.receive(peer, 5, segment, 0, bytes), deadline);
        transport.await(transport.send(peer, 5, segment, 0, bytes), deadline);
      }
      transport.flush();
    }
  }

  @Test
  void messagesAllocateNothing() throws Exception {
    FreeRounds rounds = new FreeRounds(2);
    MemorySegment in = filled(3000, 1);
    MemorySegment out = filled(3000, 0);
    FutureTask<Long> other = new FutureTask<>(() -> rounds.leastBytes(() -> echo(1, 50, in)));
    Thread.ofPlatform().daemon().start(other);
    assertThat(rounds.leastBytes(() -> echo(0, 50, out))).isZero();
    assertThat(other.get(60, TimeUnit.SECONDS)).isZero();
  }
}
