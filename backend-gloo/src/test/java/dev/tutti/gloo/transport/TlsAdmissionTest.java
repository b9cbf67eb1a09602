package dev.tutti.gloo.transport;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.tutti.RendezvousException;
import dev.tutti.Settings;
import dev.tutti.gloo.transport.connect.NetworkId;
import dev.tutti.gloo.transport.connect.PeerAddress;
import dev.tutti.gloo.transport.connect.Protection;
import dev.tutti.gloo.transport.connect.RankBlob;
import dev.tutti.spi.BackendContext;
import dev.tutti.spi.Time;
import dev.tutti.store.HashStore;
import dev.tutti.testkit.TestAuthority;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Arrays;
import java.util.concurrent.Callable;
import java.util.concurrent.FutureTask;
import javax.net.ssl.SSLContext;
import javax.net.ssl.SSLSocket;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Talks to a rank 0 of 2 that encrypts, through a TLS socket of the JDK. */
@Timeout(300)
class TlsAdmissionTest {
  private static final InetAddress LESS = InetAddress.ofLiteral("127.0.0.1");
  private static final Duration LIMIT = Duration.ofMinutes(4);
  private static final InetAddress GREATER = InetAddress.ofLiteral("127.0.0.2");

  @TempDir Path folder;
  private final HashStore store = new HashStore();
  private Settings settings;
  private SSLContext context;

  @BeforeEach
  void issue() throws Exception {
    TestAuthority authority = new TestAuthority(folder, "authority");
    TestAuthority.Issued own = authority.issue("rank");
    settings = Settings.ofEnvironment(own.settings("TUTTI_GLOO_TLS", authority.certificate()));
    context = Protection.of(settings).tls();
  }

  /** Starts rank 0, to which rank 1 has to connect. */
  private FutureTask<Transport> rank0(Time time) {
    BackendContext rank0 =
        BackendContext.builder("g", 0, 2, store, LIMIT).settings(settings).time(time).build();
    return background(
        () -> new TransportRendezvous(rank0, LESS, false, false).connect(Duration.ofMillis(1)));
  }

  private static <T> FutureTask<T> background(Callable<T> call) {
    FutureTask<T> task = new FutureTask<>(call);
    Thread _ = Thread.ofVirtual().start(task);
    return task;
  }

  private void publish(ServerSocket server) {
    PeerAddress address =
        new PeerAddress(
            (InetSocketAddress) server.getLocalSocketAddress(),
            -1,
            true,
            NetworkId.UNKNOWN,
            Protection.TLS);
    store.set(
        "0/1",
        new RankBlob(TransportRendezvous.hostname(), address, new long[] {10, 11}).toBytes());
  }

  /** Connects as rank 1. */
  private Socket greet() throws IOException {
    InetSocketAddress address = RawPeer.blobOfRank0(store, 2).address().socket();
    Socket socket = new Socket(address.getAddress(), address.getPort());
    socket.getOutputStream().write(RawPeer.words(1));
    return socket;
  }

  @Test
  @SuppressWarnings("try") // one end closes early
  void whatComesRightBehindTheProofIsNotOverlooked() throws Exception {
    try (ServerSocket server = new ServerSocket(0, 16, GREATER)) {
      FutureTask<Transport> opening = rank0(Time.SYSTEM);
      publish(server);
      try (Socket plain = greet();
          SSLSocket tls =
              (SSLSocket) context.getSocketFactory().createSocket(plain, "rank 0", 1, true)) {
        tls.startHandshake();
        assertThat(tls.getSession().getProtocol()).isEqualTo("TLSv1.3");
        tls.getOutputStream().write(new byte[32]);
        assertThat(tls.getInputStream().readNBytes(32)).hasSize(32);
        // One record contains the end of the proof and an announcement.
        byte[] both = Arrays.copyOf(new byte[32], 32 + 48);
        System.arraycopy(RawPeer.words(48, 2, 7, 0, 1, 0), 0, both, 32, 48);
        tls.getOutputStream().write(both);
        assertThat(tls.getInputStream().readNBytes(32)).hasSize(32);
        Transport transport = opening.get();
        TestOperation op = TestOperation.seconds(60);
        new RawMessages(transport).receiveAny(op, 7, RawPeerScripts.bytes(0), 1);
        assertThat(Arrays.copyOf(tls.getInputStream().readNBytes(48), 24))
            .isEqualTo(RawPeer.words(48, 3, 7));
        tls.getOutputStream().write(RawPeer.words(49, 1, 7, 0, 1, 0));
        tls.getOutputStream().write(5);
        assertThat(op.parkUntilDone(op.deadlineNanos())).isTrue();
        assertThat(op.cause()).isNull();
        FutureTask<Void> closing = background(() -> close(transport));
        // A farewell, then the end of TLS, then the end of the connection.
        assertThat(Arrays.copyOf(tls.getInputStream().readNBytes(48), 16))
            .isEqualTo(RawPeer.words(48, Header.FAREWELL));
        assertThat(tls.getInputStream().read()).isEqualTo(-1);
        // The rank waits until this end has been closed too.
        tls.close();
        closing.get();
      }
    }
  }

  private static Void close(Transport transport) {
    transport.close();
    return null;
  }

  @Test
  void whoSpeaksPlainlyIsRefused() throws Exception {
    try (ServerSocket server = new ServerSocket(0, 16, GREATER)) {
      SkippedTime time = new SkippedTime();
      FutureTask<Transport> opening = rank0(time);
      publish(server);
      try (Socket plain = greet()) {
        plain.getOutputStream().write(RawPeer.words(48, 2, 7, 0, 1, 0));
        assertThat(plain.getInputStream().readAllBytes()).isNotNull();
        // Rank 1 itself may still come, so rank 0 waits until the limit has passed.
        assertThat(opening.isDone()).isFalse();
        time.skipped.set(LIMIT.toNanos());
        assertThatThrownBy(opening::get)
            .hasCauseInstanceOf(RendezvousException.class)
            .hasMessageContaining(
                "no connection with rank 1; a connection that claimed to be from rank 1 was"
                    + " refused")
            .hasMessageContaining("SSL");
      }
    }
  }
}
