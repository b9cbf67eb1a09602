package dev.tutti.gloo.transport;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.tutti.RendezvousException;
import dev.tutti.Settings;
import dev.tutti.fake.simulation.Simulated;
import dev.tutti.fake.simulation.SimulatedHost;
import dev.tutti.fake.simulation.SimulatedWorld;
import dev.tutti.gloo.transport.connect.BlobSeal;
import dev.tutti.gloo.transport.connect.NetworkId;
import dev.tutti.gloo.transport.connect.PeerAddress;
import dev.tutti.gloo.transport.connect.Protection;
import dev.tutti.gloo.transport.connect.RankBlob;
import dev.tutti.spi.BackendContext;
import dev.tutti.spi.PeerLostException;
import dev.tutti.store.HashStore;
import dev.tutti.store.JobToken;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.channels.ServerSocketChannel;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.concurrent.FutureTask;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.parallel.Isolated;

/**
 * Talks, byte by byte over a simulated network, to a rank 0 of 2 that has a token; {@code
 * TokenTest} uses sockets.
 */
@Isolated("threads of other tests in shared locks would bring in real time")
class PeerAuthenticationTest implements Simulated.Fixture {
  private static final String TEXT = "the token of this job";
  private static final JobToken TOKEN = JobToken.of(TEXT);
  private static final Duration LONG = Duration.ofSeconds(200);
  private static final byte[] CONNECTED_BY_0 = "g\0000\0001\0".getBytes(StandardCharsets.UTF_8);
  private static final byte[] CONNECTED_BY_1 = "g\0001\0000\0".getBytes(StandardCharsets.UTF_8);

  /** The hosts of both ranks; the rank on the one with the greater address connects. */
  private SimulatedHost less;

  private SimulatedHost greater;
  private HashStore store;

  @Override
  public void open() {
    less = SimulatedHost.current();
    greater = less.newHost("greater");
    store = new HashStore(LONG, less.time());
  }

  @Override
  public void close() {
    store.close();
  }

  private FutureTask<Transport> rank0(SimulatedHost host, Duration timeout) {
    BackendContext context =
        BackendContext.builder("g", 0, 2, store, timeout)
            .settings(Settings.ofEnvironment(Map.of("TUTTI_TOKEN", TEXT)))
            .time(host.time())
            .build();
    FutureTask<Transport> opening =
        new FutureTask<>(
            () ->
                new TransportRendezvous(context, host.address(), host.channels(), false, false)
                    .connect(Duration.ZERO));
    Thread _ = host.time().start("rank 0", opening);
    return opening;
  }

  /** Publishes rank 1 as a listening socket. */
  private void publish(ServerSocketChannel server, boolean tutti, long flags, JobToken token)
      throws IOException {
    PeerAddress address =
        new PeerAddress(
            (InetSocketAddress) server.getLocalAddress(), -1, tutti, NetworkId.UNKNOWN, flags);
    byte[] blob =
        new RankBlob(TransportRendezvous.hostname(), address, new long[] {10, 11}).toBytes();
    BlobSeal.put(blob, token, "g", 1);
    store.set("0/1", blob);
  }

  private static ServerSocketChannel listen(SimulatedHost host) throws IOException {
    return host.channels()
        .openServerSocketChannel()
        .bind(new InetSocketAddress(host.address(), 0), 16);
  }

  private static RawSocket accept(ServerSocketChannel server) throws IOException {
    return new RawSocket(server.accept());
  }

  /** Connects to rank 0 from the host with the greater address. */
  private RawSocket dial() throws IOException {
    return RawSocket.connect(greater.channels(), RawPeer.blobOfRank0(store, 2).address().socket());
  }

  /** Connects as rank 1. */
  private RawSocket greet() throws IOException {
    return dial().send(RawPeer.words(1));
  }

  /** Sends a nonce and a proof, and returns both nonces. */
  private static byte[][] prove(RawSocket socket, JobToken token) throws IOException {
    byte[] own = JobToken.nonce();
    byte[] theirs = socket.send(own).read(32);
    socket.send(token.proof("tutti gloo connector 1", CONNECTED_BY_1, own, theirs));
    return new byte[][] {own, theirs};
  }

  private void assertExchanges(Transport transport, RawSocket socket) throws Exception {
    TestOperation op = new TestOperation(less.time(), Duration.ofSeconds(100));
    new RawMessages(transport).send(op, 1, 7, RawPeerScripts.bytes(1), 1);
    assertThat(Arrays.copyOf(socket.read(48), 24)).isEqualTo(RawPeer.words(48, 2, 7));
  }

  @Simulated
  void bothProveThatTheyHaveTheToken() throws Exception {
    try (ServerSocketChannel server = listen(greater)) {
      FutureTask<Transport> opening = rank0(less, LONG);
      publish(server, true, Protection.TOKEN, TOKEN);
      try (RawSocket socket = greet()) {
        byte[][] nonces = prove(socket, TOKEN);
        assertThat(socket.read(32))
            .isEqualTo(TOKEN.proof("tutti gloo listener 1", CONNECTED_BY_1, nonces[0], nonces[1]));
        try (Transport transport = opening.get()) {
          assertExchanges(transport, socket);
        }
      }
    }
  }

  @Simulated
  void whoConnectsProvesFirst() throws Exception {
    try (ServerSocketChannel server = listen(less)) {
      FutureTask<Transport> opening = rank0(greater, LONG);
      publish(server, true, Protection.TOKEN, TOKEN);
      try (RawSocket socket = accept(server)) {
        assertThat(socket.read(8)).isEqualTo(RawPeer.words(10));
        byte[] theirs = socket.read(32);
        byte[] own = JobToken.nonce();
        // In pieces, to check that the rank waits for the rest.
        socket.send(Arrays.copyOf(own, 5));
        socket.send(Arrays.copyOfRange(own, 5, 32));
        assertThat(socket.read(32))
            .isEqualTo(TOKEN.proof("tutti gloo connector 1", CONNECTED_BY_0, theirs, own));
        socket.send(TOKEN.proof("tutti gloo listener 1", CONNECTED_BY_0, theirs, own));
        try (Transport transport = opening.get()) {
          assertExchanges(transport, socket);
        }
      }
    }
  }

  @Simulated
  void aStrangerWithTheRightGreetingDoesNotTakeTheRanksPlace() throws Exception {
    try (ServerSocketChannel server = listen(greater)) {
      FutureTask<Transport> opening = rank0(less, LONG);
      publish(server, true, Protection.TOKEN, TOKEN);
      try (RawSocket silent = greet();
          RawSocket wrong = greet();
          RawSocket plain = greet()) {
        prove(wrong, JobToken.of("a guess at the token"));
        assertThat(wrong.readAll()).isEmpty();
        plain.send(RawPeer.words(48, 2, 0, 0, 1, 0));
        plain.send(new byte[64]);
        assertThat(plain.read(32)).hasSize(32);
        assertThat(plain.readAll()).isEmpty();
        try (RawSocket socket = greet()) {
          prove(socket, TOKEN);
          assertThat(socket.read(32)).hasSize(32);
          try (Transport transport = opening.get()) {
            assertThat(silent.readAll()).isEmpty();
            assertExchanges(transport, socket);
          }
        }
      }
    }
  }

  @Simulated(seeds = 2)
  void strangersThatStaySilentKeepNoRankOut() throws Exception {
    assertServedBeside(this::dial);
  }

  @Simulated(seeds = 2)
  void strangersThatGreetAndStaySilentKeepNoRankOut() throws Exception {
    assertServedBeside(this::greet);
  }

  /** Opens as many connections from strangers as a rank allows, and a few more. */
  private void assertServedBeside(Callable<RawSocket> stranger) throws Exception {
    List<RawSocket> silent = new ArrayList<>();
    try (ServerSocketChannel server = listen(greater)) {
      FutureTask<Transport> opening = rank0(less, LONG);
      publish(server, true, Protection.TOKEN, TOKEN);
      for (int i = 0; i < Listener.MAX_STRANGERS + 3; i++) {
        silent.add(stranger.call());
      }
      // A stranger that connects before the rank gives its name also leaves room for it.
      try (RawSocket socket = dial()) {
        silent.add(dial());
        socket.send(RawPeer.words(1));
        prove(socket, TOKEN);
        assertThat(socket.read(32)).hasSize(32);
        try (Transport transport = opening.get()) {
          assertExchanges(transport, socket);
        }
      }
    } finally {
      for (RawSocket socket : silent) {
        socket.close();
      }
    }
  }

  @Simulated
  void aRefusedStrangerDoesNotShortenTheWaitForTheRank() throws Exception {
    try (ServerSocketChannel server = listen(greater)) {
      FutureTask<Transport> opening = rank0(less, LONG);
      publish(server, true, Protection.TOKEN, TOKEN);
      try (RawSocket wrong = greet()) {
        prove(wrong, JobToken.of("a guess at the token"));
        assertThat(wrong.readAll()).isEmpty();
        SimulatedWorld.sleep(LONG.dividedBy(2));
        try (RawSocket socket = greet()) {
          prove(socket, TOKEN);
          assertThat(socket.read(32)).hasSize(32);
          try (Transport transport = opening.get()) {
            assertExchanges(transport, socket);
          }
        }
      }
    }
  }

  @Simulated
  void whoConnectsNamesTheRankThatDidNotProve() throws Exception {
    try (ServerSocketChannel server = listen(less)) {
      FutureTask<Transport> opening = rank0(greater, LONG);
      publish(server, true, Protection.TOKEN, TOKEN);
      try (RawSocket socket = accept(server)) {
        socket.read(8 + 32);
        socket.send(JobToken.nonce());
        byte[] proof = socket.read(32);
        // Sends back what it received.
        socket.send(proof);
        assertThatThrownBy(() -> opening.get())
            .hasCauseInstanceOf(PeerLostException.class)
            .hasMessageContaining("rank 0 of group g: rank 1 cannot be trusted: it did not prove");
      }
    }
  }

  @Simulated
  void whoEndsTheConnectionInsteadIsNamed() throws Exception {
    try (ServerSocketChannel server = listen(less)) {
      FutureTask<Transport> opening = rank0(greater, LONG);
      publish(server, true, Protection.TOKEN, TOKEN);
      try (RawSocket socket = accept(server)) {
        socket.read(8 + 32);
      }
      assertThatThrownBy(() -> opening.get())
          .hasCauseInstanceOf(PeerLostException.class)
          .hasMessageContaining(
              "rank 1 cannot be trusted: it closed the connection during authentication");
    }
  }

  @Simulated
  void whoNeverProvesIsNamedAtTheDeadline() throws Exception {
    try (ServerSocketChannel server = listen(greater)) {
      publish(server, true, Protection.TOKEN, TOKEN);
      FutureTask<Transport> opening = rank0(less, Duration.ofMillis(500));
      try (RawSocket silent = greet()) {
        silent.send(JobToken.nonce());
        silent.read(32);
        assertThatThrownBy(() -> opening.get())
            .hasMessageContaining("no connection with rank 1 within 500 ms");
        assertThat(silent.readAll()).isEmpty();
      }
    }
  }

  @Simulated
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
    try (ServerSocketChannel server = listen(less)) {
      publish(server, tutti, flags, token);
      assertThatThrownBy(() -> rank0(less, LONG).get())
          .hasCauseInstanceOf(RendezvousException.class)
          .hasMessageContaining("rank 0 of group g: ")
          .hasMessageContaining("TUTTI_TOKEN")
          .hasMessageContaining(why);
    }
  }

  @Test
  void aSealIsForItsRankAndGroup() {
    PeerAddress address =
        new PeerAddress(
            new InetSocketAddress(InetAddress.ofLiteral("127.0.0.1"), 5),
            -1,
            true,
            7,
            Protection.TOKEN);
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
