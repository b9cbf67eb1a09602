package dev.tutti.gloo.transport;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.gloo.transport.connect.PeerAddress;
import dev.tutti.gloo.transport.connect.RankBlob;
import dev.tutti.gloo.transport.ring.RingReader;
import dev.tutti.gloo.transport.ring.RingWriter;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.time.Duration;
import org.junit.jupiter.api.Test;

/** Tests ranks that share memory, one of which leaves before it has accepted the other's socket. */
class RingFarewellTest extends RawPeerScripts {
  private final RingRanks.Rings memory = new RingRanks.Rings();

  @Test
  void aPeerThatSaidFarewellInItsRingIsNotLostWithItsSocket() throws Exception {
    run(
        true,
        (transport, peer) -> {
          transport.share(
              new int[] {0, 1}, memory, store, System.nanoTime() + Duration.ofMinutes(1).toNanos());
          byte[] farewell = RawPeer.words(48, Header.FAREWELL, Header.CLEAN, 0, 0, 0);
          new RingWriter(memory.ring(1, 0)).write(ByteBuffer.wrap(farewell));
          peer.die();
          TestOperation receive = operation();
          new RawMessages(transport).receive(receive, 1, 0, bytes(0), 1);
          new RawMessages(transport).await(receive, receive.deadlineNanos());
          assertThat(receive.cause()).hasMessageContaining("rank 1 closed its group");
          assertThat(transport.transportFailure.cause()).isNull();
        });
    assertThat(failures).isEmpty();
  }

  @Test
  void whoLeavesWithoutASocketSaysFarewellInItsRing() throws Exception {
    // Of two ranks, the one with the greater address connects; here this rank never does.
    PeerAddress greater =
        new PeerAddress(
            new InetSocketAddress(InetAddress.ofLiteral("127.0.0.2"), 1), -1, true, 0, 0);
    store.set("0/1", new RankBlob(TransportRendezvous.hostname(), greater, new long[0]).toBytes());
    try (Transport transport = transport(2, Duration.ofMinutes(1), true)) {
      transport.progress.lock.lock();
      try {
        transport.pairs.share(new int[] {0, 1}, memory);
      } finally {
        transport.progress.lock.unlock();
      }
    }
    ByteBuffer header = ByteBuffer.allocate(RingRanks.RING).order(ByteOrder.LITTLE_ENDIAN);
    new RingReader(memory.ring(0, 1)).read(header);
    assertThat(header.flip().remaining()).isEqualTo(Header.BYTES);
    assertThat(Header.opcode(header, 0)).isEqualTo(Header.FAREWELL);
    assertThat(Header.slot(header, 0)).isEqualTo(Header.CLEAN);
  }
}
