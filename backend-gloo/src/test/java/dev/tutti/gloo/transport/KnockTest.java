package dev.tutti.gloo.transport;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.gloo.TestContexts;
import dev.tutti.gloo.transport.connect.PeerAddress;
import dev.tutti.gloo.transport.connect.Protection;
import dev.tutti.spi.BackendContext;
import dev.tutti.spi.PeerLostException;
import dev.tutti.store.HashStore;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.net.SocketAddress;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.spi.SelectorProvider;
import java.time.Duration;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Lets rank 0 knock at rank 1, a plain server socket, which should then connect. */
@Timeout(300)
class KnockTest {
  private static final long KNOCK = Listener.knock(0);
  private static final long SEQUENCE = 17;
  private static final int TAG = 3;
  private static final int LIMIT_SECONDS = 60;

  private final MemorySegment in = RingRanks.filled(1, 0);

  /** Has a long deadline, so that a receive that misses its peer's end is not over in time. */
  private final TestOperation receive = TestOperation.seconds(3600);

  private ServerSocket peer;
  private Transport transport;
  private SocketAddress address;

  @BeforeEach
  void begin() throws IOException {
    InetAddress loopback = InetAddress.ofLiteral("127.0.0.1");
    peer = new ServerSocket(0, 16, loopback);
    peer.setSoTimeout(LIMIT_SECONDS * 1000);
    BackendContext context = TestContexts.of(0, 2, new HashStore(), Duration.ofSeconds(60));
    transport =
        new Transport(context, Protection.of(context.settings()), SelectorProvider.provider());
    ServerSocketChannel server = ServerSocketChannel.open();
    server.bind(new InetSocketAddress(loopback, 0));
    address = server.getLocalAddress();
    transport.pairs.listen(server);
    transport.pairs.expect(
        1,
        new PeerAddress((InetSocketAddress) peer.getLocalSocketAddress(), -1, true, 0, 0),
        SEQUENCE,
        false);
    transport.progress.start(0);
  }

  @AfterEach
  void end() throws IOException {
    transport.close();
    peer.close();
  }

  private void receive(boolean waits) {
    RawMessages messages = new RawMessages(transport);
    messages.receive(receive, 1, TAG, in, 1);
    if (waits) {
      Thread.ofPlatform().daemon().start(() -> messages.await(receive, receive.deadlineNanos()));
    }
  }

  private void hearKnock() throws IOException {
    try (Socket knock = peer.accept()) {
      knock.setSoTimeout(LIMIT_SECONDS * 1000);
      assertThat(word(knock)).isEqualTo(KNOCK);
      assertThat(knock.getInputStream().read()).isEqualTo(-1);
    }
  }

  private static long word(Socket socket) throws IOException {
    return ByteBuffer.wrap(RawPeer.read(socket, 8)).order(ByteOrder.LITTLE_ENDIAN).getLong();
  }

  /** Either a thread that waits for the message or the daemon notices. */
  @ParameterizedTest
  @ValueSource(booleans = {true, false})
  void aPeerThatLeavesWithoutLookingAtAKnockIsMissed(boolean waits) throws Exception {
    receive(waits);
    hearKnock();
    peer.close();
    assertThat(receive.parkUntilDone(System.nanoTime() + LIMIT_SECONDS * 1_000_000_000L)).isTrue();
    assertThat(receive.cause())
        .isInstanceOf(PeerLostException.class)
        .hasMessageContaining("rank 1 cannot be reached");
  }

  @Test
  void aRankKnocksAgainUntilItIsConnected() throws Exception {
    receive(false);
    hearKnock();
    hearKnock();
    hearKnock();
    try (Socket socket = RawPeer.dial((InetSocketAddress) address)) {
      socket.getOutputStream().write(RawPeer.words(SEQUENCE));
      socket.getOutputStream().write(RawPeer.words(48, Header.NOTIFY_SEND_READY, TAG, 0, 1, 0));
      socket.getOutputStream().write(RawPeer.words(49, Header.SEND_UNBOUND_BUFFER, TAG, 0, 1, 0));
      socket.getOutputStream().write(9);
      assertThat(receive.parkUntilDone(System.nanoTime() + LIMIT_SECONDS * 1_000_000_000L))
          .isTrue();
      assertThat(receive.cause()).isNull();
      assertThat(in.get(ValueLayout.JAVA_BYTE, 0)).isEqualTo((byte) 9);
      transport.progress.lock.lock();
      try {
        transport.pairs.retry();
        assertThat(transport.pairs.hasRetries()).isFalse();
      } finally {
        transport.progress.lock.unlock();
      }
    }
  }
}
