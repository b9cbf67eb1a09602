package dev.tutti.store.tcp;

import static dev.tutti.store.tcp.RawClient.request;
import static dev.tutti.store.tcp.ScriptedServer.ended;
import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.tutti.Store;
import dev.tutti.StoreTokenException;
import dev.tutti.shared.FreePorts;
import dev.tutti.store.JobToken;
import dev.tutti.store.ManualTime;
import dev.tutti.store.ManualTime.Passing;
import dev.tutti.store.tcp.ScriptedServer.Peer;
import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import java.util.concurrent.Future;
import java.util.logging.Level;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Tests which clients may use the store of a job with a token. */
@Timeout(300)
class TcpStoreTokenTest {
  private static final Duration LONG = Duration.ofSeconds(60);
  private static final JobToken TOKEN = JobToken.of("the token of this job");
  private static final JobToken OTHER = JobToken.of("the token of another job");

  private final LogCapture log = new LogCapture();
  private final TcpStoreServer server = server(TOKEN);
  private final TcpStore good = new TcpStore(options(server, TOKEN));

  private static TcpStoreServer server(JobToken token) {
    return new TcpStoreServer(InetAddress.getLoopbackAddress(), 0, token);
  }

  private static TcpStoreOptions options(TcpStoreServer server, JobToken token) {
    return options(server.port(), token);
  }

  private static TcpStoreOptions options(int port, JobToken token) {
    return TcpStoreOptions.of("127.0.0.1", port).withTimeout(LONG).withToken(token);
  }

  @AfterEach
  void theStoreWasNotTouched() {
    assertThat(good.listKeys()).isEmpty();
    good.close();
    server.close();
    log.close();
  }

  @Test
  void whoHasTheTokenUsesTheStore() throws Exception {
    try (TcpStore other = new TcpStore(options(server, TOKEN));
        Store copy = other.duplicate();
        ScriptedServer threads = new ScriptedServer()) {
      // These calls wait, so each uses its own connection.
      Future<byte[]> value = threads.client(() -> good.get("key"));
      Future<byte[]> popped = threads.client(() -> copy.queuePop("queue", LONG));
      other.set("key", "value");
      other.queuePush("queue", "item".getBytes(UTF_8));
      assertThat(ended(value)).asString(UTF_8).isEqualTo("value");
      assertThat(ended(popped)).asString(UTF_8).isEqualTo("item");
      assertThat(other.deleteKey("key")).isTrue();
    }
    assertThat(log.messages(server.port())).isEmpty();
  }

  @Test
  void anotherTokenIsRefusedAtOnce() {
    assertRefused(
        server, OTHER, "its token differs from this process's; TUTTI_TOKEN must be the same");
    log.await(server.port(), "its token differs from this server's");
  }

  @Test
  void whoHasNoTokenIsRefusedAtOnce() {
    assertRefused(server, JobToken.NONE, "it requires a token, but this process has none");
    log.await(server.port(), "it has not proved that it has this server's token");
  }

  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void whoProvesNoTokenIsDroppedAfterAWhile(boolean asks) throws Exception {
    ManualTime time = new ManualTime();
    try (TcpStoreServer impatient =
            new TcpStoreServer(InetAddress.getLoopbackAddress(), 0, TOKEN, null, time);
        TcpStore known = new TcpStore(options(impatient, TOKEN));
        RawClient stranger = RawClient.greeted(impatient.port())) {
      assertThat(known.add("n", 1)).isEqualTo(1);
      if (asks) {
        stranger.send("90").send(new byte[JobToken.NONCE_BYTES]).expect("00");
      }
      assertThat(log.messages(impatient.port())).isEmpty();
      time.pass(Passing.ALL);
      stranger.expectEndAfterAnything();
      log.await(impatient.port(), "it has not proved that it has this server's token");
      assertThat(known.add("n", 1)).isEqualTo(2);
      assertThat(log.messages(impatient.port())).hasSize(1);
    }
  }

  @Test
  void aServerWithoutATokenIsRefusedAtOnce() {
    try (TcpStoreServer open = server(JobToken.NONE)) {
      assertRefused(open, TOKEN, "it has no token, but this process has one; TUTTI_TOKEN");
    }
  }

  private static void assertRefused(TcpStoreServer server, JobToken token, String why) {
    long start = System.nanoTime();
    assertThatThrownBy(() -> new TcpStore(options(server, token)))
        .isInstanceOf(StoreTokenException.class)
        .hasMessageContaining("store server at 127.0.0.1:" + server.port() + ": ")
        .hasMessageContaining(why);
    assertThat(Duration.ofNanos(System.nanoTime() - start)).isLessThan(LONG.dividedBy(2));
  }

  @Test
  void aServerThatOnlyClosesIsRefusedInTheEnd() throws Exception {
    ManualTime time = new ManualTime();
    time.pass(Passing.PARKS);
    try (ScriptedServer pytorch = new ScriptedServer()) {
      TcpStoreOptions options = options(pytorch.port(), TOKEN).withTime(time);
      Future<TcpStore> opening = pytorch.client(() -> new TcpStore(options));
      try (Peer peer = pytorch.accept()) {
        peer.expect("90").read(JobToken.NONCE_BYTES);
      }
      Future<?> _ = pytorch.client(pytorch::closeAll);
      assertThatThrownBy(() -> ended(opening))
          .hasCauseInstanceOf(StoreTokenException.class)
          .hasMessageContaining("is a PyTorch store server")
          .hasMessageContaining("TUTTI_TOKEN must be the same");
    }
  }

  /** The client gives up if the connections are closed for ten seconds. */
  @Test
  void aClientTriesAgainWhereAServerEndsOrAProxyHasNone() throws Exception {
    int port = FreePorts.one();
    TcpStoreOptions options = options(port, TOKEN).withTime(new ManualTime());
    try (ScriptedServer threads = new ScriptedServer()) {
      Future<TcpStore> opening = threads.client(() -> new TcpStore(options));
      try (ServerSocket ending = new ServerSocket(port, 50, InetAddress.getLoopbackAddress())) {
        for (int attempt = 0; attempt < 8; attempt++) {
          ending.accept().close();
        }
      }
      try (TcpStoreServer next = new TcpStoreServer(null, port, TOKEN);
          TcpStore store = ended(opening)) {
        assertThat(store.add("n", 1)).isEqualTo(1);
        assertThat(next.port()).isEqualTo(port);
      }
    }
  }

  @Test
  void aServerThatEchoesIsNotBelieved() throws Exception {
    try (ScriptedServer echo = new ScriptedServer()) {
      Future<TcpStore> opening = echo.client(() -> new TcpStore(options(echo.port(), TOKEN)));
      try (Peer peer = echo.accept()) {
        byte[] nonce = peer.expect("90").read(JobToken.NONCE_BYTES);
        peer.send("00").send(nonce);
        byte[] proof = peer.expect("91").read(JobToken.PROOF_BYTES);
        peer.send("00").send(proof);
        assertThatThrownBy(() -> ended(opening))
            .hasCauseInstanceOf(StoreTokenException.class)
            .hasMessageContaining("does not prove that it has the same token");
        peer.expectEnd();
      }
    }
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "0d 01 02 03 04",
        "01 01 00 00 00 00 00 00 00 6b 01 00 00 00 00 00 00 00 76",
        "01 01 00 00 00 00 00 00 00 6b ff ff 7f 00 00 00 00 00",
        "03 01 00 00 00 00 00 00 00 6b 01 00 00 00 00 00 00 00",
        "11",
        "82 01 00 00 00 00 00 00 00 01 00 00 00 00 00 00 00 6b",
        "ff"
      })
  void nothingIsDoneBeforeTheProof(String hex) throws IOException {
    try (RawClient client = RawClient.greeted(server.port()).send(hex)) {
      client.expectEnd();
    }
    // Nor between the challenge and the proof.
    try (RawClient client = RawClient.greeted(server.port())) {
      proof(client, JobToken.nonce());
      client.send(hex).expectEnd();
    }
  }

  @Test
  void aProofComesAfterOneChallenge() throws IOException {
    try (RawClient client = RawClient.greeted(server.port())) {
      client.send(prove(new byte[JobToken.PROOF_BYTES])).expectEnd();
    }
    try (RawClient client = RawClient.greeted(server.port())) {
      proof(client, JobToken.nonce());
      client.send(challenge(JobToken.nonce())).expectEnd();
    }
    try (RawClient client = RawClient.greeted(server.port())) {
      client.send(prove(proof(client, JobToken.nonce()))).expect("00");
      assertThat(client.socket.getInputStream().readNBytes(32)).hasSize(32);
      client.send(prove(new byte[JobToken.PROOF_BYTES])).expectEnd();
    }
  }

  @Test
  void aProofIsGoodForOneConnection() throws IOException {
    byte[] nonce = JobToken.nonce();
    byte[] proof;
    try (RawClient client = RawClient.greeted(server.port())) {
      proof = proof(client, nonce);
      client.send(prove(proof)).expect("00");
      assertThat(client.socket.getInputStream().readNBytes(32)).isNotEqualTo(proof);
      client.send("0d 01 02 03 04").expect("01 02 03 04");
    }
    try (RawClient client = RawClient.greeted(server.port())) {
      assertThat(proof(client, nonce)).isNotEqualTo(proof);
      client.send(prove(proof)).expect("01").expectEnd();
    }
  }

  @Test
  void theHandshakeMayComeInPieces() throws IOException {
    byte[] nonce = JobToken.nonce();
    try (RawClient client = RawClient.greeted(server.port())) {
      byte[] challenge = challenge(nonce);
      client.send(Arrays.copyOf(challenge, 7));
      client.send(Arrays.copyOfRange(challenge, 7, challenge.length)).expect("00");
      byte[] theirs = client.socket.getInputStream().readNBytes(32);
      byte[] proof = prove(TOKEN.proof("tutti store client 1", nonce, theirs));
      client.send(Arrays.copyOf(proof, 1)).send(Arrays.copyOfRange(proof, 1, 20));
      // The first request may come right after the proof.
      client.send(Arrays.copyOfRange(proof, 20, proof.length)).send(request(Wire.GET, "/k"));
      client.expect("00");
      byte[] answer = client.socket.getInputStream().readNBytes(32);
      assertThat(answer).isEqualTo(TOKEN.proof("tutti store server 1", nonce, theirs));
      client.expect("00 00 00 00 00 00 00 00");
    }
  }

  @Test
  void noiseEndsOnlyItsOwnConnection() throws IOException {
    Random random = new Random(20261121);
    for (int i = 0; i < 50; i++) {
      byte[] noise = new byte[1 + random.nextInt(200)];
      random.nextBytes(noise);
      boolean greets = random.nextBoolean();
      try (RawClient client =
          greets ? RawClient.greeted(server.port()) : RawClient.connect(server.port())) {
        if (greets) {
          // Neither of the two queries that wait for more data.
          noise[0] &= 0x7f;
        } else {
          noise[0] |= 1;
        }
        client.send(noise);
        client.expectEndAfterAnything();
      }
    }
  }

  @Test
  void aServerForAllSaysSoUnlessItIsOnLoopback() {
    try (TcpStoreServer open = new TcpStoreServer(null, 0, JobToken.NONE);
        TcpStoreServer closed = new TcpStoreServer(null, 0, TOKEN);
        TcpStoreServer local = server(JobToken.NONE)) {
      assertThat(log.messages(open.port()))
          .isEqualTo(
              List.of(
                  ("store server on port %d accepts any client that reaches it; TUTTI_TOKEN is"
                          + " not set")
                      .formatted(open.port())));
      assertThat(log.levels(open.port())).containsExactly(Level.WARNING);
      assertThat(log.messages(closed.port())).isEmpty();
      assertThat(log.messages(local.port())).isEmpty();
    }
  }

  private static byte[] challenge(byte[] nonce) {
    return raw(Wire.CHALLENGE, nonce);
  }

  private static byte[] prove(byte[] proof) {
    return raw(Wire.PROVE, proof);
  }

  private static byte[] raw(int query, byte[] body) {
    byte[] request = new byte[1 + body.length];
    request[0] = (byte) query;
    System.arraycopy(body, 0, request, 1, body.length);
    return request;
  }

  /** Sends a challenge, and computes the proof that answers the server's nonce. */
  private static byte[] proof(RawClient client, byte[] nonce) throws IOException {
    client.send(challenge(nonce)).expect("00");
    byte[] theirs = client.socket.getInputStream().readNBytes(JobToken.NONCE_BYTES);
    return TOKEN.proof("tutti store client 1", nonce, theirs);
  }
}
