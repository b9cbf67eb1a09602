package dev.tutti.gloo.transport;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.tutti.CollectiveException;
import dev.tutti.FailureInfo;
import dev.tutti.OpType;
import dev.tutti.RendezvousException;
import dev.tutti.StoreSilentException;
import dev.tutti.gloo.transport.RawPeer.Message;
import dev.tutti.gloo.transport.connect.RankBlob;
import dev.tutti.spi.PeerLostException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.net.InetSocketAddress;
import java.time.Duration;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Talks to a transport, rank 0 of 2, byte by byte. */
@Timeout(300)
class PairTest extends RawPeerScripts {
  private static Message notifySend(long slot, long length) {
    return new Message(2, slot, length, "");
  }

  @Test
  void sendsDataOnlyAfterTheReceiverIsReady() throws Exception {
    run(
        false,
        (transport, peer) -> {
          TestOperation op = TestOperation.seconds(100);
          new RawMessages(transport).send(op, 1, 7, bytes(1, 2, 3), 3);
          assertThat(peer.receive()).isEqualTo(notifySend(7, 3));
          assertThat(op.isDone()).isFalse();
          peer.notifyReceive(7, 3);
          assertThat(peer.receive()).isEqualTo(new Message(1, 7, 3, "010203"));
          assertThat(op.parkUntilDone(op.deadlineNanos())).isTrue();
          assertThat(op.cause()).isNull();
        });
  }

  @Test
  void sendsAtOnceIfTheReceiverWasReadyBefore() throws Exception {
    run(
        false,
        (transport, peer) -> {
          peer.notifyReceive(9, 4);
          peer.notifyReceive(9, 4);
          settle(transport, peer);
          for (int i = 0; i < 2; i++) {
            TestOperation op = TestOperation.seconds(100);
            new RawMessages(transport).send(op, 1, 9, bytes(i, 0, 0, 4), 4);
            assertThat(op.isDone()).isTrue();
            assertThat(peer.receive()).isEqualTo(notifySend(9, 4));
            assertThat(peer.receive()).isEqualTo(new Message(1, 9, 4, "0" + i + "000004"));
          }
        });
  }

  @Test
  void aCallerInTheSelectorHearsOfAnEndToldByAnotherThread() throws Exception {
    run(
        false,
        (transport, peer) -> {
          Thread caller = Thread.currentThread();
          CountDownLatch telling = new CountDownLatch(1);
          TestOperation op = TestOperation.seconds(2000);
          op.beforeEnd(
              () -> {
                telling.countDown();
                SelectorWaits.await(caller);
              });
          new RawMessages(transport).receive(op, 1, 7, bytes(0), 1);
          assertThat(peer.receive()).isEqualTo(new Message(3, 7, 1, ""));
          peer.notifySend(7, 1);
          peer.data(7, (byte) 5);
          assertThat(telling.await(60, TimeUnit.SECONDS)).isTrue();
          assertThat(new RawMessages(transport).await(op, op.deadlineNanos())).isTrue();
          assertThat(op.rank()).isEqualTo(1);
        });
  }

  @Test
  void aSendWhoseMemoryIsGoneWhenThePeerIsReadyFailsAtOnce() throws Exception {
    run(
        false,
        (transport, peer) -> {
          TestOperation op = TestOperation.seconds(100);
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

  @Test
  void aSendFromMemoryThatIsGoneFailsAndSendsNothing() throws Exception {
    run(
        false,
        (transport, peer) -> {
          peer.notifyReceive(9, 1000);
          settle(transport, peer);
          Arena arena = Arena.ofShared();
          MemorySegment gone = arena.allocate(1000);
          arena.close();
          TestOperation op = TestOperation.seconds(100);
          new RawMessages(transport).send(op, 1, 9, gone, 1000);
          assertThat(op.isDone()).isTrue();
          assertCannotBe("read", op.cause());
          transport.close();
          assertThat(catchEnd(peer)).isTrue();
        });
  }

  @Test
  void receiveFromAnyAnswersTheAnnouncement() throws Exception {
    run(
        false,
        (transport, peer) -> {
          TestOperation late = TestOperation.seconds(100);
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
          TestOperation early = TestOperation.seconds(100);
          MemorySegment second = bytes(0, 0);
          new RawMessages(transport).receiveAny(early, 3, second, 2);
          assertThat(peer.receive()).isEqualTo(new Message(3, 3, 2, ""));
          peer.data(3, (byte) 8, (byte) 9);
          assertThat(new RawMessages(transport).await(early, early.deadlineNanos())).isTrue();
          assertThat(second.toArray(ValueLayout.JAVA_BYTE)).containsExactly(8, 9);
        });
  }

  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void failsWhatIsPendingWhenThePeerDies(boolean tutti) throws Exception {
    run(
        tutti,
        (transport, peer) -> {
          TestOperation receive = TestOperation.seconds(100);
          new RawMessages(transport).receive(receive, 1, 0, bytes(0), 1);
          Request request = transport.receive(1, 1, bytes(0), 0, 1);
          peer.die();
          assertThatThrownBy(() -> transport.await(request, TestOperation.seconds(100)))
              .isInstanceOfSatisfying(
                  PeerLostException.class, lost -> assertThat(lost.peer()).isEqualTo(1))
              .hasMessageContaining("rank 0 of group g: rank 1 closed the connection");
          assertThat(receive.parkUntilDone(receive.deadlineNanos())).isTrue();
          assertThat(receive.cause()).isInstanceOf(PeerLostException.class);
          assertThat(receive.rank()).isEqualTo(1);
          TestOperation later = TestOperation.seconds(100);
          new RawMessages(transport).send(later, 1, 0, bytes(0), 1);
          assertThat(later.cause()).isInstanceOf(PeerLostException.class);
        });
  }

  @Test
  void tellsTheGroupWhenARankOfTuttiDiesWhileNothingRuns() throws Exception {
    run(
        true,
        (transport, peer) -> {
          peer.die();
          Failure failure = failures.poll(60, TimeUnit.SECONDS);
          assertThat(failure).isNotNull();
          assertThat(failure.rank()).isEqualTo(1);
          assertThat(failure.cause()).hasMessageContaining("closed the connection");
        });
  }

  @Test
  void aFarewellIsNoFailure() throws Exception {
    run(
        true,
        (transport, peer) -> {
          peer.send(RawPeer.words(48, Header.FAREWELL, Header.CLEAN, 0, 0, 0));
          peer.die();
          TestOperation receive = TestOperation.seconds(100);
          new RawMessages(transport).receive(receive, 1, 0, bytes(0), 1);
          new RawMessages(transport).await(receive, receive.deadlineNanos());
          assertThat(receive.cause()).hasMessageContaining("rank 1 closed its group");
        });
    assertThat(failures).isEmpty();
  }

  @ParameterizedTest
  @CsvSource({"1, 1", Header.UNKNOWN + ", -1"})
  void aFarewellNamesWhoIsToBlame(long reason, int blamed) throws Exception {
    run(
        true,
        (transport, peer) -> {
          peer.send(RawPeer.words(48, Header.FAREWELL, reason, 0, 0, 0));
          Failure failure = failures.poll(60, TimeUnit.SECONDS);
          assertThat(failure).isNotNull();
          assertThat(failure.rank()).isEqualTo(blamed);
          assertThat(failure.cause())
              .hasMessageContaining("rank 1 gave up the group")
              .isInstanceOfSatisfying(
                  PeerLostException.class, lost -> assertThat(lost.peer()).isEqualTo(blamed));
        });
  }

  @Test
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

  @Test
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

  @Test
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
            TestOperation receive = TestOperation.seconds(100);
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

  @Test
  void garbageWhileNothingRunsIsReported() throws Exception {
    run(
        false,
        (transport, peer) -> {
          peer.send(RawPeer.words(48, 99, 0, 0, 0, 0));
          Failure failure = failures.poll(60, TimeUnit.SECONDS);
          assertThat(failure).isNotNull();
          assertThat(failure.cause()).hasMessageContaining("unknown opcode 99");
        });
  }

  @Test
  void waitsEndAtTheirDeadline() throws Exception {
    run(
        false,
        (transport, peer) -> {
          Request request = transport.receive(1, 5, bytes(0), 0, 1);
          long start = System.nanoTime();
          assertThatThrownBy(
                  () -> transport.await(request, new TestOperation(Duration.ofMillis(200))))
              .isInstanceOf(TimeoutException.class)
              .hasMessageContaining("receive of 1 bytes from rank 1");
          assertThat(System.nanoTime() - start).isBetween(200_000_000L, 60_000_000_000L);
          TestOperation pending = TestOperation.seconds(100);
          new RawMessages(transport).receive(pending, 1, 6, bytes(0), 1);
          assertThat(new RawMessages(transport).await(pending, System.nanoTime() + 100_000_000))
              .isFalse();
        });
  }

  @Test
  void abortWakesEverybody() throws Exception {
    run(
        false,
        (transport, peer) -> {
          Request request = transport.receive(1, 5, bytes(0), 0, 1);
          TestOperation pending = TestOperation.seconds(100);
          new RawMessages(transport).receive(pending, 1, 6, bytes(0), 1);
          FutureTask<Void> waiter =
              background(
                  () -> {
                    transport.await(request, TestOperation.seconds(100));
                    return null;
                  });
          FutureTask<Boolean> second =
              background(
                  () ->
                      new RawMessages(transport)
                          .await(pending, System.nanoTime() + 100_000_000_000L));
          assertThat(peer.receive(2)).hasSize(2);
          transport.abort(new IllegalStateException("enough"));
          assertThatThrownBy(() -> waiter.get(60, TimeUnit.SECONDS))
              .isInstanceOf(ExecutionException.class)
              .hasRootCauseMessage("enough");
          assertThat(second.get(60, TimeUnit.SECONDS)).isTrue();
          assertThat(pending.cause()).hasMessage("enough");
          peer.awaitEnd();
          assertThatThrownBy(
                  () ->
                      transport.await(
                          transport.receive(1, 5, bytes(0), 0, 1), TestOperation.seconds(5)))
              .hasMessage("enough");
        });
  }

  @Test
  void namesRanksThatDoNotCome() throws Exception {
    assertThatThrownBy(() -> transport(3, Duration.ofMillis(200), false))
        .isInstanceOf(RendezvousException.class)
        .hasMessageMatching(".*ranks 1, 2 did not publish a Gloo address within \\d+ ms");
    try (RawPeer peer = new RawPeer(false)) {
      peer.publish(store, 0, 1, 2);
      assertThatThrownBy(() -> transport(3, Duration.ofMillis(200), false))
          .hasMessageContaining("rank 2 did not publish");
    }
  }

  @Test
  void namesAPeerThatCannotBeReachedOrDoesNotConnect() throws Exception {
    RawPeer gone = new RawPeer(false);
    gone.publish(store, 0, 1);
    gone.close();
    assertThatThrownBy(() -> transport(2, Duration.ofMillis(500), false))
        .satisfiesAnyOf(
            e -> assertThat(e).hasMessageContaining("rank 1 cannot be reached at 127.0.0.1"),
            e -> assertThat(e).hasMessageContaining("no connection with rank 1 within 500 ms"));
  }

  @Test
  void strangersAreTurnedAway() throws Exception {
    try (RawPeer peer = new RawPeer(false, "127.0.0.2")) {
      FutureTask<Transport> starting =
          background(() -> transport(2, Duration.ofSeconds(100), false));
      InetSocketAddress address = RawPeer.blobOfRank0(store, 2).address().socket();
      try (RawSocket wrong = RawSocket.connect(address);
          RawSocket cut = RawSocket.connect(address);
          RawSocket silent = RawSocket.connect(address)) {
        wrong.send(RawPeer.words(0x1234, 5, 6, 7));
        cut.send((byte) 1, (byte) 2, (byte) 3);
        cut.endOutput();
        peer.join(store);
        try (Transport transport = starting.get(60, TimeUnit.SECONDS)) {
          assertThat(wrong.readAll()).isEmpty();
          assertThat(cut.readAll()).isEmpty();
          assertThat(silent.readAll()).isEmpty();
          TestOperation op = TestOperation.seconds(100);
          new RawMessages(transport).send(op, 1, 0, bytes(1), 1);
          assertThat(peer.receive()).isEqualTo(notifySend(0, 1));
        }
      }
    }
  }

  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void ranksMayConnectOnFirstUse(boolean sendsBefore) throws Exception {
    try (RawPeer peer = new RawPeer(false)) {
      peer.publish(store);
      try (Transport transport = transport(2, Duration.ofSeconds(100), true)) {
        TestOperation op = TestOperation.seconds(100);
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
