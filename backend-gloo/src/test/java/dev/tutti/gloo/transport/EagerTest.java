package dev.tutti.gloo.transport;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.tutti.fake.simulation.Simulated;
import dev.tutti.gloo.transport.RawPeer.Message;
import dev.tutti.spi.PeerLostException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Arrays;
import org.junit.jupiter.api.parallel.Isolated;

/** Tests short messages that are sent before the receiver requests them. */
@Isolated("threads of other tests in shared locks would bring in real time")
class EagerTest extends RawPeerScripts {
  private static final long SLOT = Slot.ALL_REDUCE.of(3);
  private static final int WINDOW = 32;

  private static Message readyFor(long slot, long length) {
    return new Message(Header.NOTIFY_RECV_READY, slot, length, "");
  }

  private static void eager(RawPeer peer, long slot, int... payload) throws Exception {
    peer.send(RawPeer.words(48 + payload.length, Header.EAGER, slot, 0, payload.length, 0));
    peer.send(bytes(payload).toArray(ValueLayout.JAVA_BYTE));
  }

  @Simulated
  void aShortMessageOfACollectiveIsSentAtOnce() throws Exception {
    run(
        true,
        (transport, peer) -> {
          transport.await(transport.send(1, SLOT, bytes(1, 2, 3), 0, 3), operation());
          transport.flush();
          assertThat(peer.receive()).isEqualTo(new Message(Header.EAGER, SLOT, 3, "010203"));
        });
  }

  @Simulated
  void aRankOfPyTorchIsWaitedFor() throws Exception {
    run(
        false,
        (transport, peer) -> {
          transport.sendDetached(1, SLOT, bytes(1), 0, 1);
          transport.flush();
          assertThat(peer.receive()).isEqualTo(new Message(Header.NOTIFY_SEND_READY, SLOT, 1, ""));
        });
  }

  @Simulated
  void longMessagesAndThoseThatNotAllWaitForAreAnnounced() throws Exception {
    run(
        true,
        (transport, peer) -> {
          int tooMuch = EarlyMessage.MAX_BYTES + 1;
          transport.sendDetached(1, SLOT, MemorySegment.ofArray(new byte[tooMuch]), 0, tooMuch);
          transport.sendDetached(1, SLOT, bytes(1), 0, 1);
          transport.sendDetached(1, Slot.BROADCAST.of(4), bytes(1), 0, 1);
          transport.flush();
          assertThat(peer.receive(3))
              .extracting(Message::opcode)
              .as("the second must not overtake the first")
              .containsOnly((long) Header.NOTIFY_SEND_READY);
        });
  }

  @Simulated
  void noMoreThanAWindowGoesUnasked() throws Exception {
    run(
        true,
        (transport, peer) -> {
          for (int i = 0; i <= WINDOW; i++) {
            transport.sendDetached(1, SLOT, bytes(i), 0, 1);
          }
          transport.flush();
          for (int i = 0; i < WINDOW; i++) {
            assertThat(peer.receive())
                .isEqualTo(new Message(Header.EAGER, SLOT, 1, "%02x".formatted(i)));
          }
          assertThat(peer.receive()).isEqualTo(new Message(Header.NOTIFY_SEND_READY, SLOT, 1, ""));
          for (int i = 0; i < WINDOW; i++) {
            peer.notifyReceive(SLOT, 1);
          }
          settle(transport, peer);
          peer.notifyReceive(SLOT, 1);
          transport.awaitSent(operation());
          assertThat(peer.receive())
              .as("the receipt of the last goes to the one that waits")
              .isEqualTo(new Message(Header.SEND_UNBOUND_BUFFER, SLOT, 1, "20"));
          transport.sendDetached(1, SLOT, bytes(9), 0, 1);
          transport.flush();
          assertThat(peer.receive()).isEqualTo(new Message(Header.EAGER, SLOT, 1, "09"));
        });
  }

  @Simulated
  void whatCameEarlyIsKeptInOrderUntilItIsAskedFor() throws Exception {
    run(
        true,
        (transport, peer) -> {
          eager(peer, SLOT, 1, 2);
          eager(peer, SLOT, 3, 4);
          peer.notifySend(SLOT, 2);
          settle(transport, peer);
          MemorySegment target = bytes(0, 0, 0, 0, 0, 0);
          Request first = transport.receive(1, SLOT, target, 0, 2);
          assertThat(first.reached()).isTrue();
          Request second =
              transport.receiveCombining(
                  1,
                  SLOT,
                  target,
                  2,
                  2,
                  new Combiner() {
                    @Override
                    public int unitBytes() {
                      return 1;
                    }

                    @Override
                    public void combine(
                        MemorySegment held,
                        long heldOffset,
                        MemorySegment received,
                        long offset,
                        long bytes) {
                      for (long i = 0; i < bytes; i++) {
                        int sum =
                            held.get(ValueLayout.JAVA_BYTE, heldOffset + i)
                                + received.get(ValueLayout.JAVA_BYTE, offset + i)
                                + 10;
                        held.set(ValueLayout.JAVA_BYTE, heldOffset + i, (byte) sum);
                      }
                    }
                  });
          assertThat(second.reached()).isTrue();
          Request third = transport.receive(1, SLOT, target, 4, 2);
          assertThat(third.reached()).isFalse();
          transport.flush();
          assertThat(peer.receive(3)).containsOnly(readyFor(SLOT, 2));
          peer.data(SLOT, (byte) 5, (byte) 6);
          transport.await(third, operation());
          assertThat(target.toArray(ValueLayout.JAVA_BYTE)).containsExactly(1, 2, 13, 14, 5, 6);
        });
  }

  @Simulated
  void aMessageInPiecesIsTakenWhole() throws Exception {
    run(
        true,
        (transport, peer) -> {
          int length = EarlyMessage.MAX_BYTES;
          byte[] payload = new byte[length];
          for (int i = 0; i < length; i++) {
            payload[i] = (byte) (i * 7);
          }
          MemorySegment target = MemorySegment.ofArray(new byte[length]);
          Request request = transport.receive(1, SLOT, target, 0, length);
          transport.flush();
          assertThat(peer.receive()).isEqualTo(readyFor(SLOT, length));
          byte[] header = RawPeer.words(48 + length, Header.EAGER, SLOT, 0, length, 0);
          peer.send(Arrays.copyOf(header, 20));
          settleTime(transport);
          peer.send(Arrays.copyOfRange(header, 20, 48));
          peer.send(Arrays.copyOf(payload, 1000));
          settleTime(transport);
          peer.send(Arrays.copyOfRange(payload, 1000, length));
          transport.await(request, operation());
          assertThat(target.toArray(ValueLayout.JAVA_BYTE)).isEqualTo(payload);
        });
  }

  /** Gives the transport time to read what has arrived so far; the tests hold without it, too. */
  private void settleTime(Transport transport) {
    transport.progress.drive(() -> false, time.nanoTime() + 20_000_000, true);
  }

  @Simulated
  void moreThanAWindowIsRefused() throws Exception {
    run(
        true,
        (transport, peer) -> {
          for (int i = 0; i <= WINDOW; i++) {
            eager(peer, Slot.ALL_REDUCE.of(i), i);
          }
          assertThat(failures.take().cause()).hasMessageContaining("more than 32 messages");
        });
  }

  @Simulated
  void aPeerThatDoesNotKeepToTheRulesIsRefused() throws Exception {
    long tooLong = EarlyMessage.MAX_BYTES + 1;
    run(
        true,
        (transport, peer) -> {
          peer.send(RawPeer.words(48 + tooLong, Header.EAGER, SLOT, 0, tooLong, 0));
          assertThat(failures.take().cause()).hasMessageContaining("unknown opcode");
        });
    run(
        true,
        (transport, peer) -> {
          peer.send(RawPeer.words(48, Header.EAGER, SLOT, 0, 4, 0));
          assertThat(failures.take().cause()).hasMessageContaining("sent an invalid header");
        });
    run(
        false,
        (transport, peer) -> {
          eager(peer, SLOT, 1);
          assertThat(failures.take().cause()).hasMessageContaining("unknown opcode");
        });
  }

  @Simulated
  void whatCameEarlyIsThereAfterThePeerLeft() throws Exception {
    run(
        true,
        (transport, peer) -> {
          eager(peer, SLOT, 8);
          settle(transport, peer);
          peer.send(RawPeer.words(48, Header.FAREWELL, Header.CLEAN, 0, 0, 0));
          peer.die();
          transport.progress.drive(
              () -> transport.pairs.get(1).failure() != null,
              time.nanoTime() + 100_000_000_000L,
              true);
          MemorySegment target = bytes(0);
          TestOperation op = operation();
          transport.await(transport.receive(1, SLOT, target, 0, 1), op);
          assertThat(target.get(ValueLayout.JAVA_BYTE, 0)).isEqualTo((byte) 8);
          assertThatThrownBy(() -> transport.await(transport.receive(1, SLOT, target, 0, 1), op))
              .isInstanceOf(PeerLostException.class)
              .hasMessageContaining("closed its group");
        });
  }

  @Simulated
  void aReceiveWhoseMemoryIsGoneFailsAtOnce() throws Exception {
    run(
        true,
        (transport, peer) -> {
          Request request;
          try (Arena arena = Arena.ofShared()) {
            request = transport.receive(1, SLOT, arena.allocate(2), 0, 2);
          }
          eager(peer, SLOT, 1, 2);
          assertCannotBeWritten(transport, request);
        });
    run(
        true,
        (transport, peer) -> {
          eager(peer, SLOT, 1, 2);
          settle(transport, peer);
          Arena arena = Arena.ofShared();
          MemorySegment gone = arena.allocate(2);
          arena.close();
          assertCannotBeWritten(transport, transport.receive(1, SLOT, gone, 0, 2));
        });
  }

  private void assertCannotBeWritten(Transport transport, Request request) {
    assertThatThrownBy(() -> transport.await(request, operation()))
        .isInstanceOf(IllegalStateException.class)
        .hasMessage("the memory of this rank's tensor cannot be written")
        .hasRootCauseMessage("Already closed");
  }

  @Simulated
  void ranksWithOtherSizesAreToldSo() throws Exception {
    run(
        true,
        (transport, peer) -> {
          eager(peer, SLOT, 1, 2, 3);
          settle(transport, peer);
          Request request = transport.receive(1, SLOT, bytes(0, 0), 0, 2);
          assertThatThrownBy(() -> transport.await(request, operation()))
              .isInstanceOf(PeerLostException.class)
              .hasMessageContaining("sent 3 bytes")
              .hasMessageContaining("the receive is for 2 bytes");
        });
  }
}
