package dev.tutti.gloo.transport;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.tutti.CollectiveException;
import dev.tutti.FailureInfo;
import dev.tutti.OpType;
import dev.tutti.RendezvousException;
import dev.tutti.StoreSilentException;
import dev.tutti.fake.simulation.Simulated;
import dev.tutti.fake.simulation.SimulatedHost;
import dev.tutti.fake.simulation.SimulatedWorld;
import dev.tutti.gloo.transport.RawPeer.Message;
import dev.tutti.gloo.transport.connect.RankBlob;
import dev.tutti.spi.PeerLostException;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.net.InetSocketAddress;
import java.net.SocketException;
import java.time.Duration;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeoutException;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.parallel.Isolated;

/** Talks to a transport, rank 0 of 2, byte by byte over a simulated network. */
@Isolated("threads of other tests in shared locks would bring in real time")
class PairTest extends RawPeerScripts {
  private static Message notifySend(long slot, long length) {
    return new Message(2, slot, length, "");
  }

  @Test
  void exchangesOverSocketsOfTheSystem() throws Exception {
    run(
        true,
        (transport, peer) -> {
          settle(transport, peer);
          peer.send(RawPeer.words(48, Header.FAREWELL, Header.CLEAN, 0, 0, 0));
        });
    assertThat(failures).isEmpty();
  }

  @Simulated
  void sendsDataOnlyAfterTheReceiverIsReady() throws Exception {
    run(
        false,
        (transport, peer) -> {
          TestOperation op = operation();
          new RawMessages(transport).send(op, 1, 7, bytes(1, 2, 3), 3);
          assertThat(peer.receive()).isEqualTo(notifySend(7, 3));
          assertThat(op.isDone()).isFalse();
          peer.notifyReceive(7, 3);
          assertThat(peer.receive()).isEqualTo(new Message(1, 7, 3, "010203"));
          assertThat(op.parkUntilDone(op.deadlineNanos())).isTrue();
          assertThat(op.cause()).isNull();
        });
  }

  @Simulated
  void sendsAtOnceIfTheReceiverWasReadyBefore() throws Exception {
    run(
        false,
        (transport, peer) -> {
          peer.notifyReceive(9, 4);
          peer.notifyReceive(9, 4);
          settle(transport, peer);
          for (int i = 0; i < 2; i++) {
            TestOperation op = operation();
            new RawMessages(transport).send(op, 1, 9, bytes(i, 0, 0, 4), 4);
            assertThat(peer.receive()).isEqualTo(notifySend(9, 4));
            assertThat(peer.receive()).isEqualTo(new Message(1, 9, 4, "0" + i + "000004"));
            assertThat(op.parkUntilDone(op.deadlineNanos())).isTrue();
            assertThat(op.cause()).isNull();
          }
        });
  }

  @Simulated
  void aCallerInTheSelectorHearsOfAnEndToldByAnotherThread() throws Exception {
    run(
        false,
        (transport, peer) -> {
          CountDownLatch telling = new CountDownLatch(1);
          TestOperation op = operation();
          op.beforeEnd(
              () -> {
                telling.countDown();
                // Time passes only while the caller waits.
                SimulatedWorld.sleep(Duration.ofMillis(1));
              });
          new RawMessages(transport).receive(op, 1, 7, bytes(0), 1);
          assertThat(peer.receive()).isEqualTo(new Message(3, 7, 1, ""));
          peer.notifySend(7, 1);
          peer.data(7, (byte) 5);
          telling.await();
          assertThat(new RawMessages(transport).await(op, op.deadlineNanos())).isTrue();
          assertThat(op.rank()).isEqualTo(1);
        });
  }

  @Simulated
  void aSendWhoseMemoryIsGoneWhenThePeerIsReadyFailsAtOnce() throws Exception {
    run(
        false,
        (transport, peer) -> {
          TestOperation op = operation();
          try (Arena arena = Arena.ofShared()) {
            new RawMessages(transport).send(op, 1, 7, arena.allocate(1000), 1000);
            assertThat(peer.receive()).isEqualTo(notifySend(7, 1000));
          }
          peer.notifyReceive(7, 1000);
          assertThat(op.parkUntilDone(op.deadlineNanos())).isTrue();
          assertCannotBe("read", op.cause());
          assertThat(transport.failureOf(1)).isSameAs(op.cause());
        });
  }

  private static void assertCannotBe(String used, Throwable cause) {
    assertThat(cause)
        .isInstanceOf(IllegalStateException.class)
        .hasMessage("the memory of this rank's tensor cannot be " + used)
        .hasRootCauseMessage("Already closed");
  }

  @Simulated
  void aSendFromMemoryThatIsGoneFailsAndSendsNothing() throws Exception {
    run(
        false,
        (transport, peer) -> {
          peer.notifyReceive(9, 1000);
          settle(transport, peer);
          Arena arena = Arena.ofShared();
          MemorySegment gone = arena.allocate(1000);
          arena.close();
          TestOperation op = operation();
          new RawMessages(transport).send(op, 1, 9, gone, 1000);
          assertThat(op.isDone()).isTrue();
          assertCannotBe("read", op.cause());
          transport.close();
          assertThat(catchEnd(peer)).isTrue();
        });
  }

  @Simulated
  void receiveFromAnyAnswersTheAnnouncement() throws Exception {
    run(
        false,
        (transport, peer) -> {
          TestOperation late = operation();
          MemorySegment first = bytes(0, 0);
          new RawMessages(transport).receiveAny(late, 3, first, 2);
          peer.notifySend(3, 2);
          assertThat(peer.receive()).isEqualTo(new Message(3, 3, 2, ""));
          // A second announcement that no receive has asked for yet is remembered.
          peer.notifySend(3, 2);
          peer.data(3, (byte) 1, (byte) 2);
          assertThat(new RawMessages(transport).await(late, late.deadlineNanos())).isTrue();
          assertThat(late.rank()).isEqualTo(1);
          assertThat(first.toArray(ValueLayout.JAVA_BYTE)).containsExactly(1, 2);
          TestOperation early = operation();
          MemorySegment second = bytes(0, 0);
          new RawMessages(transport).receiveAny(early, 3, second, 2);
          assertThat(peer.receive()).isEqualTo(new Message(3, 3, 2, ""));
          peer.data(3, (byte) 8, (byte) 9);
          assertThat(new RawMessages(transport).await(early, early.deadlineNanos())).isTrue();
          assertThat(second.toArray(ValueLayout.JAVA_BYTE)).containsExactly(8, 9);
        });
  }

  @Simulated
  void failsWhatIsPendingWhenARankOfPyTorchDies() throws Exception {
    assertAllFails(false);
  }

  @Simulated
  void failsWhatIsPendingWhenARankOfTuttiDies() throws Exception {
    assertAllFails(true);
  }

  private void assertAllFails(boolean tutti) throws Exception {
    run(
        tutti,
        (transport, peer) -> {
          TestOperation receive = operation();
          new RawMessages(transport).receive(receive, 1, 0, bytes(0), 1);
          Request request = transport.receive(1, 1, bytes(0), 0, 1);
          peer.die();
          assertThatThrownBy(() -> transport.await(request, operation()))
              .isInstanceOfSatisfying(
                  PeerLostException.class, lost -> assertThat(lost.peer()).isEqualTo(1))
              .hasMessageContaining("rank 0 of group g: rank 1 closed the connection");
          assertThat(receive.parkUntilDone(receive.deadlineNanos())).isTrue();
          assertThat(receive.cause()).isInstanceOf(PeerLostException.class);
          assertThat(receive.rank()).isEqualTo(1);
          TestOperation later = operation();
          new RawMessages(transport).send(later, 1, 0, bytes(0), 1);
          assertThat(later.cause()).isInstanceOf(PeerLostException.class);
        });
  }

  @Simulated
  void tellsTheGroupWhenARankOfTuttiDiesWhileNothingRuns() throws Exception {
    run(
        true,
        (transport, peer) -> {
          peer.die();
          Failure failure = failures.take();
          assertThat(failure.rank()).isEqualTo(1);
          assertThat(failure.cause()).hasMessageContaining("closed the connection");
        });
  }

  @Simulated
  void aFarewellIsNoFailure() throws Exception {
    run(
        true,
        (transport, peer) -> {
          peer.send(RawPeer.words(48, Header.FAREWELL, Header.CLEAN, 0, 0, 0));
          peer.awaitEnd();
          peer.die();
          TestOperation receive = operation();
          new RawMessages(transport).receive(receive, 1, 0, bytes(0), 1);
          new RawMessages(transport).await(receive, receive.deadlineNanos());
          assertThat(receive.cause()).hasMessageContaining("rank 1 closed its group");
        });
    assertThat(failures).isEmpty();
  }

  @Simulated
  void aFarewellNamesWhoIsToBlame() throws Exception {
    assertBlamed(1, 1);
    assertBlamed(Header.UNKNOWN, -1);
  }

  private void assertBlamed(long reason, int blamed) throws Exception {
    run(
        true,
        (transport, peer) -> {
          peer.send(RawPeer.words(48, Header.FAREWELL, reason, 0, 0, 0));
          Failure failure = failures.take();
          assertThat(failure.rank()).isEqualTo(blamed);
          assertThat(failure.cause())
              .hasMessageContaining("rank 1 gave up the group")
              .isInstanceOfSatisfying(
                  PeerLostException.class, lost -> assertThat(lost.peer()).isEqualTo(blamed));
        });
  }

  @Simulated
  void aFarewellNamesItsRankOnlyAfterAFailureOfItsOwn() throws Exception {
    run(
        true,
        (transport, peer) -> {
          transport.abort(new CollectiveException("failed", info(0), null));
          assertThat(peer.receive()).isEqualTo(new Message(Header.FAREWELL, 0, 0, ""));
        });
    run(
        true,
        (transport, peer) -> {
          transport.abort(new StoreSilentException("no answer"));
          assertThat(peer.receive()).isEqualTo(new Message(Header.FAREWELL, Header.UNKNOWN, 0, ""));
        });
  }

  private static FailureInfo info(int failedRank) {
    return FailureInfo.builder("g", 0, 2)
        .operation(OpType.BARRIER, 1)
        .peer(failedRank)
        .failedRank(failedRank)
        .build();
  }

  @Simulated
  void leavesQuietlyAfterAFarewellOfItsOwn() throws Exception {
    run(
        true,
        (transport, peer) -> {
          FutureTask<Void> closing =
              background(
                  () -> {
                    transport.close();
                    return null;
                  });
          assertThat(peer.receive()).isEqualTo(new Message(Header.FAREWELL, Header.CLEAN, 0, ""));
          peer.awaitEnd();
          peer.die();
          assertThat(closing.get()).isNull();
        });
    run(
        false,
        (transport, peer) -> {
          transport.close();
          assertThat(catchEnd(peer)).isTrue();
        });
  }

  private static boolean catchEnd(RawPeer peer) throws Exception {
    try {
      peer.receive();
      return false;
    } catch (java.io.EOFException e) {
      return true;
    }
  }

  @Simulated
  void refusesWhatBreaksTheProtocol() throws Exception {
    byte[][] bad = {
      RawPeer.words(48, 77, 0, 0, 0, 0),
      RawPeer.words(48, 0, 0, 0, 0, 0),
      RawPeer.words(47, 2, 0, 0, 0, 0),
      RawPeer.words(50, 1, 5, 0, 1, 0),
      RawPeer.words(48 + (1L << 40), 1, 5, 0, 1L << 40, 0),
      RawPeer.words(43, 1, 5, 0, -5, 0),
      RawPeer.words(49, 1, 6, 0, 1, 0),
      "GET / HTTP/1.1\r\nHost: example.org\r\nAccept: */*\r\n\r\n"
          .getBytes(java.nio.charset.StandardCharsets.US_ASCII),
    };
    String[] expected = {
      "unknown opcode 77",
      "sent an invalid header",
      "sent an invalid header",
      "sent an invalid header",
      "1099511627776 bytes on slot 0x5, but the receive is for 1 bytes",
      "sent -5 bytes",
      "slot 0x6, for which no receive is posted",
      "sent an invalid header"
    };
    for (int i = 0; i < bad.length; i++) {
      byte[] bytes = bad[i];
      String text = expected[i];
      run(
          false,
          (transport, peer) -> {
            TestOperation receive = operation();
            new RawMessages(transport).receive(receive, 1, 5, bytes(0), 1);
            peer.send(bytes);
            assertThat(new RawMessages(transport).await(receive, receive.deadlineNanos())).isTrue();
            assertThat(receive.cause())
                .isInstanceOf(PeerLostException.class)
                .hasMessageContaining(text);
            assertThat(receive.rank()).isEqualTo(1);
          });
    }
  }

  @Simulated
  void garbageWhileNothingRunsIsReported() throws Exception {
    run(
        false,
        (transport, peer) -> {
          peer.send(RawPeer.words(48, 99, 0, 0, 0, 0));
          Failure failure = failures.take();
          assertThat(failure.cause()).hasMessageContaining("unknown opcode 99");
        });
  }

  @Simulated
  void waitsEndAtTheirDeadline() throws Exception {
    run(
        false,
        (transport, peer) -> {
          Request request = transport.receive(1, 5, bytes(0), 0, 1);
          long start = time.nanoTime();
          assertThatThrownBy(
                  () -> transport.await(request, new TestOperation(time, Duration.ofMillis(200))))
              .isInstanceOf(TimeoutException.class)
              .hasMessageContaining("receive of 1 bytes from rank 1");
          assertThat(time.nanoTime() - start).isEqualTo(200_000_000);
          TestOperation pending = operation();
          new RawMessages(transport).receive(pending, 1, 6, bytes(0), 1);
          assertThat(new RawMessages(transport).await(pending, time.nanoTime() + 100_000_000))
              .isFalse();
        });
  }

  @Simulated
  void abortWakesEverybody() throws Exception {
    run(
        false,
        (transport, peer) -> {
          Request request = transport.receive(1, 5, bytes(0), 0, 1);
          TestOperation pending = operation();
          new RawMessages(transport).receive(pending, 1, 6, bytes(0), 1);
          FutureTask<Void> waiter =
              background(
                  () -> {
                    transport.await(request, operation());
                    return null;
                  });
          FutureTask<Boolean> second =
              background(
                  () ->
                      new RawMessages(transport)
                          .await(pending, time.nanoTime() + 100_000_000_000L));
          assertThat(peer.receive(2)).hasSize(2);
          transport.abort(new IllegalStateException("enough"));
          assertThatThrownBy(() -> waiter.get())
              .isInstanceOf(ExecutionException.class)
              .hasRootCauseMessage("enough");
          assertThat(second.get()).isTrue();
          assertThat(pending.cause()).hasMessage("enough");
          peer.awaitEnd();
          assertThatThrownBy(
                  () -> transport.await(transport.receive(1, 5, bytes(0), 0, 1), operation()))
              .hasMessage("enough");
        });
  }

  @Simulated
  void namesRanksThatDoNotCome() throws Exception {
    assertThatThrownBy(() -> transport(3, Duration.ofMillis(200), false))
        .isInstanceOf(RendezvousException.class)
        .hasMessageMatching(".*ranks 1, 2 did not publish a Gloo address within 200 ms");
    try (RawPeer peer = peer(false)) {
      peer.publish(store, 0, 1, 2);
      assertThatThrownBy(() -> transport(3, Duration.ofMillis(200), false))
          .hasMessageContaining("rank 2 did not publish");
    }
  }

  @Simulated
  void namesAPeerThatCannotBeReachedOrDoesNotConnect() throws Exception {
    RawPeer gone = peer(false);
    gone.publish(store, 0, 1);
    gone.close();
    assertThatThrownBy(() -> transport(2, Duration.ofMillis(500), false))
        .satisfiesAnyOf(
            e ->
                assertThat(e)
                    .hasMessageContaining(
                        "rank 1 cannot be reached at " + address.getHostAddress()),
            e -> assertThat(e).hasMessageContaining("no connection with rank 1 within 500 ms"));
  }

  @Simulated
  void strangersAreTurnedAway() throws Exception {
    // The rank with the greater address connects.
    SimulatedHost greater = SimulatedHost.current().newHost("greater");
    try (RawPeer peer = new RawPeer(false, greater.channels(), greater.address())) {
      FutureTask<Transport> starting =
          background(() -> transport(2, Duration.ofSeconds(100), false));
      InetSocketAddress rank0 = RawPeer.blobOfRank0(store, 2).address().socket();
      try (RawSocket wrong = RawSocket.connect(greater.channels(), rank0);
          RawSocket cut = RawSocket.connect(greater.channels(), rank0);
          RawSocket silent = RawSocket.connect(greater.channels(), rank0)) {
        wrong.send(RawPeer.words(0x1234, 5, 6, 7));
        cut.send((byte) 1, (byte) 2, (byte) 3);
        cut.endOutput();
        peer.join(store);
        try (Transport transport = starting.get()) {
          assertEnds(wrong);
          assertEnds(cut);
          assertEnds(silent);
          TestOperation op = operation();
          new RawMessages(transport).send(op, 1, 0, bytes(1), 1);
          assertThat(peer.receive()).isEqualTo(notifySend(0, 1));
        }
      }
    }
  }

  /** A rank that closes resets strangers it has not accepted, or of which it has not read all. */
  private static void assertEnds(RawSocket stranger) throws IOException {
    try {
      assertThat(stranger.readAll()).isEmpty();
    } catch (SocketException e) {
      assertThat(e).hasMessage("Connection reset");
    }
  }

  @Simulated
  void aRankMaySendBeforeItIsConnected() throws Exception {
    assertConnects(true);
  }

  @Simulated
  void aRankMayConnectBeforeItSends() throws Exception {
    assertConnects(false);
  }

  private void assertConnects(boolean sendsBefore) throws Exception {
    try (RawPeer peer = peer(false)) {
      peer.publish(store);
      try (Transport transport = transport(2, Duration.ofSeconds(100), true)) {
        TestOperation op = operation();
        if (sendsBefore) {
          new RawMessages(transport).send(op, 1, 4, bytes(9), 1);
        }
        RankBlob other = RawPeer.blobOfRank0(store, 0);
        peer.join(other.address(), 1, 0);
        if (!sendsBefore) {
          new RawMessages(transport).send(op, 1, 4, bytes(9), 1);
        }
        assertThat(peer.receive()).isEqualTo(notifySend(4, 1));
        peer.notifyReceive(4, 1);
        assertThat(peer.receive()).isEqualTo(new Message(1, 4, 1, "09"));
        assertThat(op.parkUntilDone(op.deadlineNanos())).isTrue();
      }
    }
  }
}
