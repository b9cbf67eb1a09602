package dev.tutti.gloo.transport;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assumptions.assumeThat;

import dev.tutti.cpu.memory.SharedHeap;
import dev.tutti.gloo.HeapMemory;
import dev.tutti.gloo.transport.ScriptedSocket.End;
import dev.tutti.gloo.transport.cma.RemoteMemory;
import dev.tutti.gloo.transport.ring.RingMemory;
import dev.tutti.gloo.transport.ring.RingReader;
import dev.tutti.gloo.transport.ring.RingWriter;
import dev.tutti.gloo.transport.ring.Sleep;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteBuffer;
import java.util.SplittableRandom;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.parallel.Isolated;

/** Lets only the thread that tries to read the peer's memory move bytes. */
@Timeout(300)
@Isolated("memory stays as it is also while tests beside it read any")
class CmaTransfersTest {
  private static final int RING = 4096;
  private static final int BYTES = RING + 1000;
  private static final int LENT = (int) CmaTransfers.LEAST_BYTES;
  private static final int SLOT = 5;
  private static final long NUMBER = 0x1122334455667788L;

  private final MemorySegment number = Arena.ofAuto().allocateFrom(ValueLayout.JAVA_LONG, NUMBER);
  private final MemorySegment in = ring();
  private final MemorySegment out = ring();
  private final RingWriter peer = new RingWriter(in);
  private final RingReader reader = new RingReader(out);
  private final TestOperation announced = TestOperation.seconds(100);
  private FuzzedTransport peers;

  @BeforeEach
  void open() throws Exception {
    peers = new FuzzedTransport();
    assumeThat(RemoteMemory.isAllowed()).as("native code may be called").isTrue();
  }

  @AfterEach
  void close() {
    peers.close();
  }

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
    TestOperation lent = TestOperation.seconds(100);
    script(
        (connection, messages, rank) -> {
          announce(connection, messages, rank);
          try (Arena arena = Arena.ofShared()) {
            messages.send(lent, rank, SLOT + 1, arena.allocate(LENT), LENT);
            connection.flush();
          }
          giveBack(connection);
        });
    assertCannotBeRead(lent);
  }

  /** Data in the shared heap must stay unchanged until the peer returns it. */
  @Test
  void aSendFromTheHeapThatIsFreedWhileItIsLentSucceeds() throws Exception {
    assumeThat(SharedHeap.ofProcess()).as("this system gives out such memory").isPresent();
    TestOperation lent = TestOperation.seconds(100);
    script(
        (connection, messages, rank) -> {
          announce(connection, messages, rank);
          MemorySegment freed;
          try (Arena arena = Arena.ofShared()) {
            MemorySegment memory = HeapMemory.allocate(arena, LENT);
            memory.fill((byte) 7);
            freed = MemorySegment.ofAddress(memory.address()).reinterpret(LENT);
            messages.send(lent, rank, SLOT + 1, memory, LENT);
            connection.flush();
          }
          assertThat(freed.get(ValueLayout.JAVA_BYTE, LENT - 1)).isEqualTo((byte) 7);
          giveBack(connection);
          assertThat(freed.get(ValueLayout.JAVA_BYTE, LENT - 1)).isZero();
        });
    assertThat(lent.isDone()).isTrue();
    assertThat(lent.cause()).isNull();
  }

  /**
   * Announces memory that the peer finds readable, so that the next data sent is lent to the peer.
   */
  private void announce(Connection connection, RawMessages messages, int rank) throws Exception {
    messages.send(announced, rank, SLOT, Arena.ofAuto().allocate(LENT), LENT);
    hear(connection, header(Header.READABLE, 0, 0));
  }

  /** Lets the peer return the memory lent to it. */
  private void giveBack(Connection connection) throws Exception {
    hear(connection, header(Header.RETURN, SLOT + 1, 0));
    peers.transport().deliver();
  }

  @Test
  void freedMemoryIsNotLent() throws Exception {
    script(
        (connection, messages, rank) -> {
          try (Arena arena = Arena.ofShared()) {
            messages.send(announced, rank, SLOT, arena.allocate(LENT), LENT);
          }
          connection.flush();
          drain(reader, ByteBuffer.allocate(RING));
          hear(connection, header(Header.READABLE, 0, 0));
          hear(connection, header(Header.NOTIFY_RECV_READY, SLOT, LENT));
          peers.transport().deliver();
        });
    assertCannotBeRead(announced);
    assertThat(drain(reader, ByteBuffer.allocate(RING))).isZero();
  }

  /** What a test does to a connection through memory, while it acts as the peer. */
  private interface Script {
    void run(Connection connection, RawMessages messages, int rank) throws Exception;
  }

  private void script(Script script) throws Exception {
    peers.next();
    peers.locked(
        () -> {
          Pair pair = peers.pair();
          script.run(share(pair), new RawMessages(peers.transport()), pair.rank);
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

  private static byte[] header(long opcode, long slot, long length) {
    return RawPeer.words(Header.BYTES, opcode, slot, 0, length, 0);
  }

  /** Lets a connection receive a header from the peer. */
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
    long self = ProcessHandle.current().pid();
    RemoteMemory own = new RemoteMemory((int) self, number.address(), NUMBER);
    assumeThat(own.read(number.address(), number, 0, 0)).as("memory may be read").isTrue();
    ByteBuffer received = ByteBuffer.allocate(2 * RING);
    TestOperation send = TestOperation.seconds(100);
    script(
        (connection, messages, rank) -> {
          peer.write(ByteBuffer.wrap(header(Header.NOTIFY_RECV_READY, SLOT, BYTES)));
          messages.send(send, rank, SLOT, Arena.ofAuto().allocate(BYTES), BYTES);
          assertThat(connection.hasUnsent()).isTrue();
          hear(
              connection,
              RawPeer.words(Header.BYTES, Header.INTRODUCTION, self, 0, number.address(), NUMBER));
          assertThat(drain(reader, received)).isEqualTo(RING);
        });
    assertThat(send.parkUntilDone(send.deadlineNanos())).isTrue();
    assertThat(send.cause()).isNull();
    assertThat(drain(reader, received)).isEqualTo(BYTES + 3 * Header.BYTES - RING);
  }
}
