package dev.tutti.gloo.transport;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.sun.management.ThreadMXBean;
import dev.tutti.gloo.transport.ScriptedSocket.End;
import dev.tutti.gloo.transport.ring.RingMemory;
import dev.tutti.spi.PeerLostException;
import dev.tutti.store.HashStore;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.management.ManagementFactory;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.time.Duration;
import java.util.SplittableRandom;
import java.util.concurrent.TimeoutException;
import org.junit.jupiter.api.Test;

/**
 * Lets a peer send without end: no wait takes longer because of it, and memory is bounded. It uses
 * sockets of the system: on a simulated network time passes before more bytes arrive.
 */
class FloodTest extends RawPeerScripts {
  private static final int BURST = 20_000;
  private static final Duration TIMEOUT = Duration.ofMillis(300);
  private static final long MOST_BYTES = 256L << 20;
  private static final int RING = 4096;

  private static byte[] repeated(byte[] frame) {
    ByteBuffer out = ByteBuffer.allocate(BURST * frame.length);
    for (int i = 0; i < BURST; i++) {
      out.put(frame);
    }
    return out.array();
  }

  private static void flood(RawPeer peer, byte[] frame) {
    byte[] burst = repeated(frame);
    Thread.ofPlatform()
        .daemon()
        .name("flood")
        .start(
            () -> {
              try {
                while (true) {
                  peer.send(burst);
                }
              } catch (IOException e) {
                // The test is over.
              }
            });
  }

  private void assertDeadlineIsKept(Transport transport) {
    Request request = transport.receive(1, 5, bytes(0), 0, 1);
    long start = time.nanoTime();
    assertThatThrownBy(() -> transport.await(request, new TestOperation(TIMEOUT)))
        .isInstanceOf(TimeoutException.class)
        .hasMessageContaining("from rank 1");
    assertThat(transport.failureOf(1)).isNull();
    assertThat(Duration.ofNanos(time.nanoTime() - start)).isGreaterThanOrEqualTo(TIMEOUT);
  }

  @Test
  void notificationsWithoutEndMoveNoDeadline() throws Exception {
    run(
        false,
        (transport, peer) -> {
          flood(peer, RawPeer.words(48, Header.NOTIFY_RECV_READY, 9, 0, 1, 0));
          assertDeadlineIsKept(transport);
          peer.die();
        });
  }

  @Test
  void doorbellsWithoutEndMoveNoDeadline() throws Exception {
    MemorySegment lines = Arena.ofAuto().allocate(2 * RingMemory.LINE, 128);
    MemorySegment rings = Arena.ofAuto().allocate(2 * (RingMemory.HEADER + RING), 128);
    RingMemory memory =
        new RingMemory() {
          @Override
          public MemorySegment sleep(int rank) {
            return lines.asSlice((long) LINE * rank, LINE);
          }

          @Override
          public MemorySegment ring(int from, int to) {
            return rings.asSlice((long) from * (HEADER + RING), HEADER + RING);
          }
        };
    run(
        true,
        (transport, peer) -> {
          transport.share(
              new int[] {0, 1}, memory, new HashStore(), time.deadline(Duration.ofMinutes(1)));
          flood(peer, RawPeer.words(48, Header.DOORBELL, 0, 0, 0, 0));
          assertDeadlineIsKept(transport);
          peer.die();
        });
  }

  /** Announces on slots that would all hash to one place of a table with a known hash function. */
  @Test
  void announcementsThatNobodyAsksForHaveABound() throws Exception {
    int count = SlotTable.MAX_SLOTS + 1;
    long goldenInverse = 0xf1de83e19937733dL;
    ByteBuffer frames = ByteBuffer.allocate(count * Header.BYTES).order(ByteOrder.LITTLE_ENDIAN);
    for (int i = 0; i < count; i++) {
      Header.put(frames, Header.NOTIFY_SEND_READY, i * goldenInverse, 1, 0);
    }
    ThreadMXBean threads = (ThreadMXBean) ManagementFactory.getThreadMXBean();
    try (FuzzedTransport peers = new FuzzedTransport()) {
      peers.next();
      ScriptedSocket socket =
          new ScriptedSocket(new SplittableRandom(1), frames.array(), End.SILENCE);
      Connection connection = peers.pair().connection;
      long before = threads.getCurrentThreadAllocatedBytes();
      peers.locked(
          () -> {
            connection.attach(socket, null, socket.key());
            while (peers.pair().failure() == null) {
              connection.readable();
            }
          });
      assertThat(peers.pair().failure())
          .isInstanceOf(PeerLostException.class)
          .hasMessageContaining("rank 1 announced more than " + SlotTable.MAX_SLOTS);
      assertThat(threads.getCurrentThreadAllocatedBytes() - before).isLessThan(MOST_BYTES);
    }
  }
}
