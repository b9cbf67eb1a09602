package dev.tutti.gloo.transport;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.fake.simulation.Simulated;
import dev.tutti.fake.simulation.SimulatedWorld;
import dev.tutti.gloo.transport.RawPeer.Message;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.time.Duration;
import java.util.concurrent.FutureTask;
import org.junit.jupiter.api.parallel.Isolated;

/** Tests what a thread of rank 0 stages while another one waits in the selector. */
@Isolated("threads of other tests in shared locks would bring in real time")
class FollowingTest extends RawPeerScripts {
  private static final long MESSAGE = 3;
  private static final long COLLECTIVE = Slot.BROADCAST.of(1);

  /** After that time, a thread that waits for a message is in the selector, not the daemon. */
  private static final Duration SETTLED = Duration.ofMillis(100);

  /** Runs a script while a thread waits in the selector for a message, which is sent afterwards. */
  private void runBesideAReceive(Script script) throws Exception {
    run(
        false,
        (transport, peer) -> {
          TestOperation receive = operation();
          RawMessages messages = new RawMessages(transport);
          messages.receive(receive, 1, MESSAGE, bytes(0), 1);
          assertThat(peer.receive()).isEqualTo(new Message(3, MESSAGE, 1, ""));
          FutureTask<Boolean> waiting =
              background(() -> messages.await(receive, receive.deadlineNanos()));
          SimulatedWorld.sleep(SETTLED);
          script.run(transport, peer);
          peer.notifySend(MESSAGE, 1);
          peer.data(MESSAGE, (byte) 5);
          assertThat(waiting.get()).isTrue();
          assertThat(receive.cause()).isNull();
        });
  }

  private FutureTask<Void> await(Transport transport, Request request) {
    return background(
        () -> {
          transport.await(request, operation());
          return null;
        });
  }

  @Simulated
  void thePeerHearsThatAFollowerIsReady() throws Exception {
    runBesideAReceive(
        (transport, peer) -> {
          MemorySegment in = bytes(0, 0);
          FutureTask<Void> receive = await(transport, transport.receive(1, COLLECTIVE, in, 0, 2));
          assertThat(peer.receive()).isEqualTo(new Message(3, COLLECTIVE, 2, ""));
          peer.notifySend(COLLECTIVE, 2);
          peer.data(COLLECTIVE, (byte) 1, (byte) 2);
          receive.get();
          assertThat(in.mismatch(bytes(1, 2))).isEqualTo(-1);
        });
  }

  /** The socket accepts only a part, so the thread in the selector has to write the rest. */
  @Simulated
  void allOfALargeMessageOfAFollowerLeaves() throws Exception {
    int length = 1 << 20;
    runBesideAReceive(
        (transport, peer) -> {
          MemorySegment out = Arena.ofAuto().allocate(length).fill((byte) 0x5a);
          Request request = transport.send(1, COLLECTIVE, out, 0, length);
          FutureTask<Void> send = await(transport, request);
          assertThat(peer.receive()).isEqualTo(new Message(2, COLLECTIVE, length, ""));
          peer.notifyReceive(COLLECTIVE, length);
          Message message = peer.receive();
          assertThat(message.length()).isEqualTo(length);
          assertThat(message.payload().equals("5a".repeat(length))).isTrue();
          send.get();
        });
  }

  /** When the driver leaves, one of several following threads takes over, then the next one. */
  @Simulated
  void threadsDriveOneAfterTheOther() throws Exception {
    int threads = 5;
    run(
        false,
        (transport, peer) -> {
          FutureTask<?>[] receives = new FutureTask<?>[threads];
          MemorySegment in = bytes(new int[threads]);
          for (int i = 0; i < threads; i++) {
            receives[i] = await(transport, transport.receive(1, COLLECTIVE + i, in, i, 1));
            assertThat(peer.receive()).isEqualTo(new Message(3, COLLECTIVE + i, 1, ""));
          }
          for (int i = 0; i < threads; i++) {
            peer.notifySend(COLLECTIVE + i, 1);
            peer.data(COLLECTIVE + i, (byte) (10 + i));
            receives[i].get();
          }
          assertThat(in.mismatch(bytes(10, 11, 12, 13, 14))).isEqualTo(-1);
        });
  }
}
