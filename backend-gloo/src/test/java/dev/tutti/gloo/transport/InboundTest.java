package dev.tutti.gloo.transport;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assumptions.assumeThat;

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
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Lets a pair read from a ring that the test writes. */
@Timeout(300)
class InboundTest {
  private static final int SUM_BYTES = 200;
  private static final long NUMBER = 0x1122334455667788L;
  private static final int MOST_TURNS = 1000;

  private static final class Adding implements Combiner {
    @Override
    public int unitBytes() {
      return 1;
    }

    @Override
    public void combine(
        MemorySegment held, long heldOffset, MemorySegment received, long offset, long bytes) {
      for (long i = 0; i < bytes; i++) {
        byte sum =
            (byte)
                (held.get(ValueLayout.JAVA_BYTE, heldOffset + i)
                    + received.get(ValueLayout.JAVA_BYTE, offset + i));
        held.set(ValueLayout.JAVA_BYTE, heldOffset + i, sum);
      }
    }
  }

  private final MemorySegment number = Arena.ofAuto().allocateFrom(ValueLayout.JAVA_LONG, NUMBER);
  private final RemoteMemory self =
      new RemoteMemory((int) ProcessHandle.current().pid(), number.address(), NUMBER);

  private static MemorySegment ring(int bytes) {
    return Arena.ofAuto().allocate(RingMemory.HEADER + bytes, RingMemory.LINE);
  }

  private static MemorySegment counted(long bytes, int factor) {
    MemorySegment segment = Arena.ofAuto().allocate(bytes);
    for (long i = 0; i < bytes; i++) {
      segment.set(ValueLayout.JAVA_BYTE, i, (byte) (i * factor));
    }
    return segment;
  }

  private static byte[] header(int opcode, long slot, long length, long address) {
    long payload = Header.hasPayload(opcode) ? length : 0;
    return RawPeer.words(Header.BYTES + payload, opcode, slot, address, length, 0);
  }

  private static void put(RingWriter ring, byte[] bytes) throws Exception {
    ByteBuffer from = ByteBuffer.wrap(bytes);
    while (from.hasRemaining()) {
      assertThat(ring.write(from)).as("space in the ring").isPositive();
    }
  }

  private static byte[] bytes(MemorySegment segment, int from, int to) {
    return segment.asSlice(from, to - from).toArray(ValueLayout.JAVA_BYTE);
  }

  /** Lets one read take the end of a sum, an offer and everything after it. */
  @ParameterizedTest
  @ValueSource(ints = {4 * 1024, 64 * 1024})
  void whatComesBehindALoanIsKept(int ringBytes) throws Exception {
    assumeThat(RemoteMemory.isAllowed()).as("native code may be called").isTrue();
    assumeThat(self.read(number.address(), number, 0, 0)).as("memory may be read").isTrue();
    int behind = ringBytes * 5 / 8;
    MemorySegment sum = counted(SUM_BYTES, 3);
    MemorySegment offered = counted(CmaTransfers.LEAST_BYTES, 5);
    MemorySegment last = counted(behind, 7);
    MemorySegment sumTarget = counted(SUM_BYTES, 1);
    MemorySegment offerTarget = Arena.ofAuto().allocate(CmaTransfers.LEAST_BYTES);
    MemorySegment lastTarget = Arena.ofAuto().allocate(behind);
    MemorySegment in = ring(ringBytes);
    RingWriter writer = new RingWriter(in);
    try (FuzzedTransport peers = new FuzzedTransport()) {
      peers.next();
      peers.locked(
          () -> {
            Transport transport = peers.transport();
            Pair pair = peers.pair();
            Connection connection = pair.connection;
            ScriptedSocket socket =
                new ScriptedSocket(new SplittableRandom(1), new byte[0], End.SILENCE);
            connection.attach(socket, null, socket.key());
            connection.share(
                new RingWriter(ring(ringBytes)),
                new RingReader(in),
                new Sleep(Arena.ofAuto().allocate(RingMemory.LINE, RingMemory.LINE)));
            connection.transfers().open(self);
            Request combining =
                transport.receiveCombining(pair.rank, 5, sumTarget, 0, SUM_BYTES, new Adding());
            Request borrowing =
                transport.receive(pair.rank, 6, offerTarget, 0, offerTarget.byteSize());
            Request plain = transport.receive(pair.rank, 7, lastTarget, 0, behind);
            put(writer, header(Header.NOTIFY_SEND_READY, 5, SUM_BYTES, 0));
            put(writer, header(Header.SEND_UNBOUND_BUFFER, 5, SUM_BYTES, 0));
            put(writer, bytes(sum, 0, 50));
            connection.pollRing();
            put(writer, bytes(sum, 50, SUM_BYTES));
            put(writer, header(Header.OFFER, 6, offered.byteSize(), offered.address()));
            put(writer, header(Header.NOTIFY_SEND_READY, 7, behind, 0));
            put(writer, header(Header.SEND_UNBOUND_BUFFER, 7, behind, 0));
            put(writer, bytes(last, 0, behind));
            for (int turn = 0; !plain.reached() && turn < MOST_TURNS; turn++) {
              connection.pollRing();
            }
            assertThat(pair.failure()).isNull();
            assertThat(combining.state).isEqualTo(Request.DONE);
            assertThat(borrowing.state).isEqualTo(Request.DONE);
            assertThat(plain.state).isEqualTo(Request.DONE);
          });
    }
    assertThat(sumTarget.mismatch(counted(SUM_BYTES, 4))).isEqualTo(-1);
    assertThat(offerTarget.mismatch(offered)).isEqualTo(-1);
    assertThat(lastTarget.mismatch(last)).isEqualTo(-1);
  }
}
