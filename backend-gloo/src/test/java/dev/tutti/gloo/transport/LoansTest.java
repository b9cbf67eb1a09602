package dev.tutti.gloo.transport;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assumptions.assumeThat;

import dev.tutti.gloo.transport.ScriptedSocket.End;
import dev.tutti.spi.SharedHeap;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteBuffer;
import java.util.SplittableRandom;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Lets nobody but the thread that tries to read the peer's memory move bytes. */
@Timeout(60)
class LoansTest {
  private static final int RING = 4096;
  private static final int BYTES = RING + 1000;
  private static final int SLOT = 5;
  private static final long NUMBER = 0x1122334455667788L;

  private final MemorySegment number = Arena.ofAuto().allocateFrom(ValueLayout.JAVA_LONG, NUMBER);
  private final MemorySegment in = ring();
  private final MemorySegment out = ring();
  private final RingWriter peer = new RingWriter(in);

  private static MemorySegment ring() {
    return Arena.ofAuto().allocate(RingMemory.HEADER + RING, RingMemory.LINE);
  }

  private static int drain(RingReader ring, ByteBuffer to) throws Exception {
    int total = 0;
    for (int count = ring.read(to); count > 0; count = ring.read(to)) {
      total += count;
    }
    return total;
  }

  @Test
  void aSendWhoseMemoryIsFreedWhileItIsLentFails() throws Exception {
    assumeThat(RemoteMemory.isAllowed()).as("native code may be called").isTrue();
    int bytes = (int) Loans.LEAST_BYTES;
    TestOperation announced = TestOperation.seconds(10);
    TestOperation lent = TestOperation.seconds(10);
    try (FuzzedTransport peers = new FuzzedTransport()) {
      script(
          peers,
          (connection, messages, rank) -> {
            messages.send(announced, rank, SLOT, Arena.ofAuto().allocate(bytes), bytes);
            hear(connection, RawPeer.words(Header.BYTES, Header.READABLE, 0, 0, 0, 0));
            try (Arena arena = Arena.ofShared()) {
              messages.send(lent, rank, SLOT + 1, arena.allocate(bytes), bytes);
              connection.flush();
            }
            hear(connection, RawPeer.words(Header.BYTES, Header.RETURN, SLOT + 1, 0, 0, 0));
            peers.transport().deliver();
          });
      assertCannotBeRead(lent);
    }
  }

  /** What is in the heap that others see stays what it is until the peer returns it. */
  @Test
  void aSendFromTheHeapThatIsFreedWhileItIsLentSucceeds() throws Exception {
    assumeThat(RemoteMemory.isAllowed()).as("native code may be called").isTrue();
    assumeThat(SharedHeap.ofProcess()).as("this system gives out such memory").isPresent();
    int bytes = (int) Loans.LEAST_BYTES;
    TestOperation announced = TestOperation.seconds(10);
    TestOperation lent = TestOperation.seconds(10);
    try (FuzzedTransport peers = new FuzzedTransport()) {
      script(
          peers,
          (connection, messages, rank) -> {
            messages.send(announced, rank, SLOT, Arena.ofAuto().allocate(bytes), bytes);
            hear(connection, RawPeer.words(Header.BYTES, Header.READABLE, 0, 0, 0, 0));
            MemorySegment freed;
            try (Arena arena = Arena.ofShared()) {
              MemorySegment memory = SharedHeap.allocate(arena, bytes, 64);
              memory.fill((byte) 7);
              freed = MemorySegment.ofAddress(memory.address()).reinterpret(bytes);
              messages.send(lent, rank, SLOT + 1, memory, bytes);
              connection.flush();
            }
            assertThat(freed.get(ValueLayout.JAVA_BYTE, bytes - 1)).isEqualTo((byte) 7);
            hear(connection, RawPeer.words(Header.BYTES, Header.RETURN, SLOT + 1, 0, 0, 0));
            peers.transport().deliver();
            assertThat(freed.get(ValueLayout.JAVA_BYTE, bytes - 1)).isZero();
          });
      assertThat(lent.isDone()).isTrue();
      assertThat(lent.cause()).isNull();
    }
  }

  @Test
  void freedMemoryIsNotLent() throws Exception {
    assumeThat(RemoteMemory.isAllowed()).as("native code may be called").isTrue();
    RingReader reader = new RingReader(out);
    int bytes = (int) Loans.LEAST_BYTES;
    TestOperation announced = TestOperation.seconds(10);
    try (FuzzedTransport peers = new FuzzedTransport()) {
      script(
          peers,
          (connection, messages, rank) -> {
            try (Arena arena = Arena.ofShared()) {
              messages.send(announced, rank, SLOT, arena.allocate(bytes), bytes);
            }
            connection.flush();
            drain(reader, ByteBuffer.allocate(RING));
            hear(connection, RawPeer.words(Header.BYTES, Header.READABLE, 0, 0, 0, 0));
            hear(
                connection,
                RawPeer.words(Header.BYTES, Header.NOTIFY_RECV_READY, SLOT, 0, bytes, 0));
            peers.transport().deliver();
          });
      assertCannotBeRead(announced);
      assertThat(drain(reader, ByteBuffer.allocate(RING))).isZero();
    }
  }

  /** Is what a test does to a connection through memory, of which it plays the peer's side. */
  private interface Script {
    void run(Connection connection, UserMessages messages, int rank) throws Exception;
  }

  private void script(FuzzedTransport peers, Script script) throws Exception {
    peers.next();
    peers.locked(
        () -> {
          Pair pair = peers.pair();
          script.run(share(pair), new UserMessages(peers.transport()), pair.rank);
        });
  }

  private Connection share(Pair pair) throws Exception {
    ScriptedSocket socket = new ScriptedSocket(new SplittableRandom(1), new byte[0], End.SILENCE);
    Connection connection = pair.connection;
    connection.attach(socket, null, socket.key());
    connection.share(
        new RingWriter(out),
        new RingReader(in),
        new Sleep(Arena.ofAuto().allocate(RingMemory.LINE, RingMemory.LINE)));
    return connection;
  }

  /** Lets a connection take a header of the peer's in. */
  private void hear(Connection connection, byte[] header) throws Exception {
    peer.write(ByteBuffer.wrap(header));
    connection.pollRing();
  }

  private static void assertCannotBeRead(TestOperation op) {
    assertThat(op.parkUntilDone(op.deadlineNanos())).isTrue();
    assertThat(op.cause())
        .hasMessage("the memory of this rank's tensor cannot be read")
        .hasRootCauseMessage("Already closed");
  }

  @Test
  void whoFindsMemoryReadableEndsTheSendsThatItFlushes() throws Exception {
    assumeThat(RemoteMemory.isAllowed()).as("native code may be called").isTrue();
    long self = ProcessHandle.current().pid();
    RemoteMemory own = new RemoteMemory((int) self, number.address(), NUMBER);
    assumeThat(own.read(number.address(), number, 0, 0)).as("memory may be read").isTrue();
    RingReader reader = new RingReader(out);
    ByteBuffer received = ByteBuffer.allocate(2 * RING);
    TestOperation send = TestOperation.seconds(10);
    try (FuzzedTransport peers = new FuzzedTransport()) {
      script(
          peers,
          (connection, messages, rank) -> {
            peer.write(
                ByteBuffer.wrap(
                    RawPeer.words(Header.BYTES, Header.NOTIFY_RECV_READY, SLOT, 0, BYTES, 0)));
            messages.send(send, rank, SLOT, Arena.ofAuto().allocate(BYTES), BYTES);
            assertThat(connection.hasUnsent()).isTrue();
            hear(
                connection,
                RawPeer.words(
                    Header.BYTES, Header.INTRODUCTION, self, 0, number.address(), NUMBER));
            assertThat(drain(reader, received)).isEqualTo(RING);
          });
      assertThat(send.parkUntilDone(send.deadlineNanos())).isTrue();
      assertThat(send.cause()).isNull();
      assertThat(drain(reader, received)).isEqualTo(BYTES + 3 * Header.BYTES - RING);
    }
  }
}
