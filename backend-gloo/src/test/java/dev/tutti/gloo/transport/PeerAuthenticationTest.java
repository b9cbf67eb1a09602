package dev.tutti.gloo.transport;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.tutti.RendezvousException;
import dev.tutti.Settings;
import dev.tutti.gloo.transport.connect.BlobSeal;
import dev.tutti.gloo.transport.connect.NetworkId;
import dev.tutti.gloo.transport.connect.PeerAddress;
import dev.tutti.gloo.transport.connect.Protection;
import dev.tutti.gloo.transport.connect.RankBlob;
import dev.tutti.spi.BackendContext;
import dev.tutti.spi.PeerLostException;
import dev.tutti.spi.Time;
import dev.tutti.store.HashStore;
import dev.tutti.store.JobToken;
import dev.tutti.testing.HeldTime;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Talks, byte by byte, to a rank 0 of 2 that has a token. */
@Timeout(300)
class PeerAuthenticationTest {
  private static final String TEXT = "the token of this job";
  private static final JobToken TOKEN = JobToken.of(TEXT);
  private static final Duration LONG = Duration.ofSeconds(200);
  private static final int LIMIT_MILLIS = 250_000;

  /** Addresses to connect from and to; the rank with the greater address connects. */
  private static final InetAddress LESS = InetAddress.ofLiteral("127.0.0.1");

  private static final InetAddress GREATER = InetAddress.ofLiteral("127.0.0.2");
  private static final byte[] CONNECTED_BY_0 = "g\0000\0001\0".getBytes(StandardCharsets.UTF_8);
  private static final byte[] CONNECTED_BY_1 = "g\0001\0000\0".getBytes(StandardCharsets.UTF_8);

  private final HashStore store = new HashStore();

  private FutureTask<Transport> rank0(InetAddress address, Duration timeout) {
    return rank0(address, timeout, Time.SYSTEM);
  }

  private FutureTask<Transport> rank0(InetAddress address, Duration timeout, Time time) {
    BackendContext context =
        BackendContext.builder("g", 0, 2, store, timeout)
            .settings(Settings.ofEnvironment(Map.of("TUTTI_TOKEN", TEXT)))
            .time(time)
            .build();
    return RawPeerScripts.background(
        () ->
            new TransportRendezvous(context, address, false, false).connect(Duration.ofMillis(1)));
  }

  /** Publishes rank 1 as a listening socket. */
  private void publish(ServerSocket server, boolean tutti, long flags, JobToken token) {
    PeerAddress address =
        new PeerAddress(
            (InetSocketAddress) server.getLocalSocketAddress(),
            -1,
            tutti,
            NetworkId.UNKNOWN,
            flags);
    byte[] blob =
        new RankBlob(TransportRendezvous.hostname(), address, new long[] {10, 11}).toBytes();
    BlobSeal.put(blob, token, "g", 1);
    store.set("0/1", blob);
  }

  private static ServerSocket listen(InetAddress address) throws IOException {
    ServerSocket server = new ServerSocket(0, 16, address);
    server.setSoTimeout(LIMIT_MILLIS);
    return server;
  }

  private static Transport ended(FutureTask<Transport> opening) throws Exception {
    return opening.get(LIMIT_MILLIS, TimeUnit.MILLISECONDS);
  }

  /** Sends a nonce and a proof, and returns both nonces. */
  private static byte[][] prove(Socket socket, JobToken token) throws IOException {
    byte[] own = JobToken.nonce();
    socket.getOutputStream().write(own);
    byte[] theirs = RawPeer.read(socket, 32);
    socket
        .getOutputStream()
        .write(token.proof("tutti gloo connector 1", CONNECTED_BY_1, own, theirs));
    return new byte[][] {own, theirs};
  }

  private static void assertExchanges(Transport transport, Socket socket) throws Exception {
    TestOperation op = TestOperation.seconds(100);
    new RawMessages(transport).send(op, 1, 7, RawPeerScripts.bytes(1), 1);
    assertThat(Arrays.copyOf(RawPeer.read(socket, 48), 24)).isEqualTo(RawPeer.words(48, 2, 7));
  }

  @Test
  void bothProveThatTheyHaveTheToken() throws Exception {
    try (ServerSocket server = listen(GREATER)) {
      FutureTask<Transport> opening = rank0(LESS, LONG);
      publish(server, true, Protection.TOKEN, TOKEN);
      try (Socket socket = RawPeer.greet(store)) {
        byte[][] nonces = prove(socket, TOKEN);
        assertThat(RawPeer.read(socket, 32))
            .isEqualTo(TOKEN.proof("tutti gloo listener 1", CONNECTED_BY_1, nonces[0], nonces[1]));
        try (Transport transport = ended(opening)) {
          assertExchanges(transport, socket);
        }
      }
    }
  }

  @Test
  void whoConnectsProvesFirst() throws Exception {
    try (ServerSocket server = listen(LESS)) {
      FutureTask<Transport> opening = rank0(GREATER, LONG);
      publish(server, true, Protection.TOKEN, TOKEN);
      try (Socket socket = server.accept()) {
        assertThat(RawPeer.read(socket, 8)).isEqualTo(RawPeer.words(10));
        byte[] theirs = RawPeer.read(socket, 32);
        byte[] own = JobToken.nonce();
        // In pieces, to check that the rank waits for the rest.
        socket.getOutputStream().write(own, 0, 5);
        socket.getOutputStream().write(own, 5, 27);
        assertThat(RawPeer.read(socket, 32))
            .isEqualTo(TOKEN.proof("tutti gloo connector 1", CONNECTED_BY_0, theirs, own));
        socket
            .getOutputStream()
            .write(TOKEN.proof("tutti gloo listener 1", CONNECTED_BY_0, theirs, own));
        try (Transport transport = ended(opening)) {
          assertExchanges(transport, socket);
        }
      }
    }
  }

  @Test
  void aStrangerWithTheRightGreetingDoesNotTakeTheRanksPlace() throws Exception {
    try (ServerSocket server = listen(GREATER)) {
      FutureTask<Transport> opening = rank0(LESS, LONG);
      publish(server, true, Protection.TOKEN, TOKEN);
      try (Socket silent = RawPeer.greet(store);
          Socket wrong = RawPeer.greet(store);
          Socket plain = RawPeer.greet(store)) {
        prove(wrong, JobToken.of("a guess at the token"));
        assertThat(wrong.getInputStream().read()).isEqualTo(-1);
        plain.getOutputStream().write(RawPeer.words(48, 2, 0, 0, 1, 0));
        plain.getOutputStream().write(new byte[64]);
        assertThat(RawPeer.read(plain, 32)).hasSize(32);
        assertThat(plain.getInputStream().read()).isEqualTo(-1);
        try (Socket socket = RawPeer.greet(store)) {
          prove(socket, TOKEN);
          assertThat(RawPeer.read(socket, 32)).hasSize(32);
          try (Transport transport = ended(opening)) {
            assertThat(silent.getInputStream().read()).isEqualTo(-1);
            assertExchanges(transport, socket);
          }
        }
      }
    }
  }

  /** Opens as many silent connections from strangers as a rank allows, and a few more. */
  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void strangersThatStaySilentKeepNoRankOut(boolean greets) throws Exception {
    List<Socket> silent = new ArrayList<>();
    try (ServerSocket server = listen(GREATER)) {
      FutureTask<Transport> opening = rank0(LESS, LONG);
      publish(server, true, Protection.TOKEN, TOKEN);
      for (int i = 0; i < Listener.MAX_STRANGERS + 3; i++) {
        silent.add(
            greets
                ? RawPeer.greet(store)
                : RawPeer.dial(RawPeer.blobOfRank0(store, 2).address().socket()));
      }
      // A stranger that connects before the rank gives its name also leaves room for it.
      try (Socket socket = RawPeer.dial(RawPeer.blobOfRank0(store, 2).address().socket())) {
        silent.add(RawPeer.dial(RawPeer.blobOfRank0(store, 2).address().socket()));
        socket.getOutputStream().write(RawPeer.words(1));
        prove(socket, TOKEN);
        assertThat(RawPeer.read(socket, 32)).hasSize(32);
        try (Transport transport = ended(opening)) {
          assertExchanges(transport, socket);
        }
      }
    } finally {
      for (Socket socket : silent) {
        socket.close();
      }
    }
  }

  @Test
  void aRefusedStrangerDoesNotShortenTheWaitForTheRank() throws Exception {
    SkippedTime time = new SkippedTime();
    try (ServerSocket server = listen(GREATER)) {
      FutureTask<Transport> opening = rank0(LESS, LONG, time);
      publish(server, true, Protection.TOKEN, TOKEN);
      try (Socket wrong = RawPeer.greet(store)) {
        prove(wrong, JobToken.of("a guess at the token"));
        assertThat(wrong.getInputStream().read()).isEqualTo(-1);
        int looks = time.looks.get();
        time.skipped.set(LONG.toNanos() / 2);
        time.awaitLooks(looks + 5);
        try (Socket socket = RawPeer.greet(store)) {
          prove(socket, TOKEN);
          assertThat(RawPeer.read(socket, 32)).hasSize(32);
          try (Transport transport = ended(opening)) {
            assertExchanges(transport, socket);
          }
        }
      }
    }
  }

  @Test
  void whoConnectsNamesTheRankThatDidNotProve() throws Exception {
    try (ServerSocket server = listen(LESS)) {
      FutureTask<Transport> opening = rank0(GREATER, LONG);
      publish(server, true, Protection.TOKEN, TOKEN);
      try (Socket socket = server.accept()) {
        RawPeer.read(socket, 8 + 32);
        socket.getOutputStream().write(JobToken.nonce());
        byte[] proof = RawPeer.read(socket, 32);
        // Sends back what it received.
        socket.getOutputStream().write(proof);
        assertThatThrownBy(() -> ended(opening))
            .hasCauseInstanceOf(PeerLostException.class)
            .hasMessageContaining("rank 0 of group g: rank 1 cannot be trusted: it did not prove");
      }
    }
  }

  @Test
  void whoEndsTheConnectionInsteadIsNamed() throws Exception {
    try (ServerSocket server = listen(LESS)) {
      FutureTask<Transport> opening = rank0(GREATER, LONG);
      publish(server, true, Protection.TOKEN, TOKEN);
      try (Socket socket = server.accept()) {
        RawPeer.read(socket, 8 + 32);
      }
      assertThatThrownBy(() -> ended(opening))
          .hasCauseInstanceOf(PeerLostException.class)
          .hasMessageContaining(
              "rank 1 cannot be trusted: it closed the connection during authentication");
    }
  }

  @Test
  void whoNeverProvesIsNamedAtTheDeadline() throws Exception {
    HeldTime time = new HeldTime();
    time.hold();
    try (ServerSocket server = listen(GREATER)) {
      publish(server, true, Protection.TOKEN, TOKEN);
      FutureTask<Transport> opening = rank0(LESS, Duration.ofMillis(500), time);
      try (Socket silent = RawPeer.greet(store)) {
        silent.getOutputStream().write(JobToken.nonce());
        RawPeer.read(silent, 32);
        time.release();
        assertThatThrownBy(() -> ended(opening))
            .hasMessageContaining("no connection with rank 1 within 500 ms");
        assertThat(silent.getInputStream().readAllBytes()).isEmpty();
      }
    }
  }

  @Test
  void ranksThatPublishOtherwiseAreRefusedBeforeAnyConnection() throws Exception {
    assertRefused(false, 0, JobToken.NONE, "PyTorch, which does not support it, runs on rank 1");
    assertRefused(true, 0, JobToken.NONE, "is set for rank 0, but not for rank 1");
    assertRefused(
        true,
        Protection.TOKEN,
        JobToken.NONE,
        "rank 1 did not prove possession of the token of this rank");
    assertRefused(
        true,
        Protection.TOKEN,
        JobToken.of("another token of a job"),
        "rank 1 did not prove possession of the token of this rank");
  }

  private void assertRefused(boolean tutti, long flags, JobToken token, String why)
      throws Exception {
    store.deleteKey("0/0");
    try (ServerSocket server = listen(LESS)) {
      publish(server, tutti, flags, token);
      assertThatThrownBy(() -> ended(rank0(LESS, LONG)))
          .hasCauseInstanceOf(RendezvousException.class)
          .hasMessageContaining("rank 0 of group g: ")
          .hasMessageContaining("TUTTI_TOKEN")
          .hasMessageContaining(why);
    }
  }

  @Test
  void aSealIsForItsRankAndGroup() {
    PeerAddress address =
        new PeerAddress(new InetSocketAddress(LESS, 5), -1, true, 7, Protection.TOKEN);
    byte[] blob = new RankBlob("host", address, new long[] {0, 1}).toBytes();
    BlobSeal.put(blob, TOKEN, "g", 1);
    assertThat(RankBlob.read(blob, 2).address()).isEqualTo(address);
    assertThat(BlobSeal.isRight(blob, TOKEN, "g", 1)).isTrue();
    assertThat(BlobSeal.isRight(blob, TOKEN, "g", 0)).isFalse();
    assertThat(BlobSeal.isRight(blob, TOKEN, "h", 1)).isFalse();
    assertThat(BlobSeal.isRight(blob, JobToken.of("another token of a job"), "g", 1)).isFalse();
    for (int i = 8; i < blob.length; i++) {
      byte[] changed = blob.clone();
      changed[i] ^= 1;
      assertThat(BlobSeal.isRight(changed, TOKEN, "g", 1)).as("byte %d", i).isFalse();
    }
  }
}
