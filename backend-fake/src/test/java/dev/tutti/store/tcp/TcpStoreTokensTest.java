package dev.tutti.store.tcp;

import static dev.tutti.store.tcp.RawClient.request;
import static dev.tutti.store.tcp.ScriptedServer.ended;
import static dev.tutti.store.tcp.StoreWorld.LONG;
import static dev.tutti.store.tcp.StoreWorld.PORT;
import static dev.tutti.store.tcp.StoreWorld.greeted;
import static dev.tutti.store.tcp.StoreWorld.scripted;
import static dev.tutti.store.tcp.StoreWorld.start;
import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.tutti.Store;
import dev.tutti.StoreTokenException;
import dev.tutti.fake.simulation.Simulated;
import dev.tutti.fake.simulation.SimulatedHost;
import dev.tutti.fake.simulation.Simulation;
import dev.tutti.store.JobToken;
import dev.tutti.store.tcp.ScriptedServer.Peer;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.nio.channels.ServerSocketChannel;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import java.util.concurrent.Future;
import org.junit.jupiter.api.parallel.Isolated;

/** Tests which clients may use the store of a job with a token. */
@Isolated("threads of other tests in shared locks would bring in real time")
class TcpStoreTokensTest implements Simulated.Fixture {
  private static final Duration SOON = Duration.ofSeconds(1);
  private static final JobToken TOKEN = JobToken.of("the token of this job");
  private static final JobToken OTHER = JobToken.of("the token of another job");

  private static final List<String> REQUESTS =
      List.of(
          "0d 01 02 03 04",
          "01 01 00 00 00 00 00 00 00 6b 01 00 00 00 00 00 00 00 76",
          "01 01 00 00 00 00 00 00 00 6b ff ff 7f 00 00 00 00 00",
          "03 01 00 00 00 00 00 00 00 6b 01 00 00 00 00 00 00 00",
          "11",
          "82 01 00 00 00 00 00 00 00 01 00 00 00 00 00 00 00 6b",
          "ff");

  private LogCapture log;
  private TcpStoreServer server;
  private TcpStore good;

  private static TcpStoreOptions options(TcpStoreServer server, JobToken token) {
    return options(server.port(), token);
  }

  private static TcpStoreOptions options(int port, JobToken token) {
    return StoreWorld.options(port).withToken(token);
  }

  @Override
  public void open() {
    log = new LogCapture();
    server = StoreWorld.server(0, TOKEN);
    good = new TcpStore(options(server, TOKEN));
  }

  @Override
  public void close() {
    assertThat(good.listKeys()).isEmpty();
    good.close();
    server.close();
    log.close();
  }

  private void awaitLog(TcpStoreServer of, String text) {
    Simulation.until(
        () -> log.messages(of.port()).stream().anyMatch(message -> message.contains(text)));
  }

  @Simulated
  void whoHasTheTokenUsesTheStore() throws Exception {
    try (TcpStore other = new TcpStore(options(server, TOKEN));
        Store copy = other.duplicate()) {
      // These calls wait, so each uses its own connection.
      Future<byte[]> value = start(() -> good.get("key"));
      Future<byte[]> popped = start(() -> copy.queuePop("queue", LONG));
      other.set("key", "value");
      other.queuePush("queue", "item".getBytes(UTF_8));
      assertThat(ended(value)).asString(UTF_8).isEqualTo("value");
      assertThat(ended(popped)).asString(UTF_8).isEqualTo("item");
      assertThat(other.deleteKey("key")).isTrue();
    }
    assertThat(log.messages(server.port())).isEmpty();
  }

  @Simulated
  void anotherTokenIsRefusedAtOnce() {
    assertRefused(
        server, OTHER, "its token differs from this process's; TUTTI_TOKEN must be the same");
    awaitLog(server, "its token differs from this server's");
  }

  @Simulated
  void whoHasNoTokenIsRefusedAtOnce() {
    assertRefused(server, JobToken.NONE, "it requires a token, but this process has none");
    awaitLog(server, "it has not proved that it has this server's token");
  }

  @Simulated
  void whoProvesNoTokenIsDroppedAfterAWhile() throws Exception {
    isDroppedAfterAWhile(false);
  }

  @Simulated
  void whoOnlyAsksIsDroppedAfterAWhile() throws Exception {
    isDroppedAfterAWhile(true);
  }

  private void isDroppedAfterAWhile(boolean asks) throws Exception {
    try (TcpStoreServer impatient = StoreWorld.server(0, TOKEN);
        TcpStore known = new TcpStore(options(impatient, TOKEN));
        RawClient stranger = greeted(impatient.port())) {
      assertThat(known.add("n", 1)).isEqualTo(1);
      if (asks) {
        stranger.send("90").send(new byte[JobToken.NONCE_BYTES]).expect("00");
      }
      assertThat(log.messages(impatient.port())).isEmpty();
      stranger.expectEndAfterAnything();
      awaitLog(impatient, "it has not proved that it has this server's token");
      assertThat(known.add("n", 1)).isEqualTo(2);
      assertThat(log.messages(impatient.port())).hasSize(1);
    }
  }

  @Simulated
  void aServerWithoutATokenIsRefusedAtOnce() {
    try (TcpStoreServer open = StoreWorld.server(0, JobToken.NONE)) {
      assertRefused(open, TOKEN, "it has no token, but this process has one; TUTTI_TOKEN");
    }
  }

  private static void assertRefused(TcpStoreServer server, JobToken token, String why) {
    Duration start = Simulation.now();
    assertThatThrownBy(() -> new TcpStore(options(server, token)))
        .isInstanceOf(StoreTokenException.class)
        .hasMessageContaining("store server at 127.0.0.1:" + server.port() + ": ")
        .hasMessageContaining(why);
    assertThat(Simulation.now().minus(start)).isLessThan(SOON);
  }

  @Simulated
  void aServerThatOnlyClosesIsRefusedInTheEnd() throws Exception {
    try (ScriptedServer pytorch = scripted()) {
      TcpStoreOptions options = options(pytorch.port(), TOKEN);
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
  @Simulated
  void aClientTriesAgainWhereAServerEndsOrAProxyHasNone() throws Exception {
    Future<TcpStore> opening = start(() -> new TcpStore(options(PORT, TOKEN)));
    try (ServerSocketChannel ending =
        SimulatedHost.current()
            .channels()
            .openServerSocketChannel()
            .bind(new InetSocketAddress(PORT))) {
      for (int attempt = 0; attempt < 8; attempt++) {
        ending.accept().close();
      }
    }
    try (TcpStoreServer next = StoreWorld.server(PORT, TOKEN);
        TcpStore store = ended(opening)) {
      assertThat(store.add("n", 1)).isEqualTo(1);
      assertThat(next.port()).isEqualTo(PORT);
    }
  }

  @Simulated
  void aServerThatEchoesIsNotBelieved() throws Exception {
    try (ScriptedServer echo = scripted()) {
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

  @Simulated
  void nothingIsDoneBeforeTheProof() throws IOException {
    for (String hex : REQUESTS) {
      isNotDoneBeforeTheProof(hex);
    }
  }

  private void isNotDoneBeforeTheProof(String hex) throws IOException {
    try (RawClient client = greeted(server.port()).send(hex)) {
      client.expectEnd();
    }
    // Nor between the challenge and the proof.
    try (RawClient client = greeted(server.port())) {
      proof(client, JobToken.nonce());
      client.send(hex).expectEnd();
    }
  }

  @Simulated
  void aProofComesAfterOneChallenge() throws IOException {
    try (RawClient client = greeted(server.port())) {
      client.send(prove(new byte[JobToken.PROOF_BYTES])).expectEnd();
    }
    try (RawClient client = greeted(server.port())) {
      proof(client, JobToken.nonce());
      client.send(challenge(JobToken.nonce())).expectEnd();
    }
    try (RawClient client = greeted(server.port())) {
      client.send(prove(proof(client, JobToken.nonce()))).expect("00");
      assertThat(client.read(32)).hasSize(32);
      client.send(prove(new byte[JobToken.PROOF_BYTES])).expectEnd();
    }
  }

  @Simulated
  void aProofIsGoodForOneConnection() throws IOException {
    byte[] nonce = JobToken.nonce();
    byte[] proof;
    try (RawClient client = greeted(server.port())) {
      proof = proof(client, nonce);
      client.send(prove(proof)).expect("00");
      assertThat(client.read(32)).isNotEqualTo(proof);
      client.send("0d 01 02 03 04").expect("01 02 03 04");
    }
    try (RawClient client = greeted(server.port())) {
      assertThat(proof(client, nonce)).isNotEqualTo(proof);
      client.send(prove(proof)).expect("01").expectEnd();
    }
  }

  @Simulated
  void theHandshakeMayComeInPieces() throws IOException {
    byte[] nonce = JobToken.nonce();
    try (RawClient client = greeted(server.port())) {
      byte[] challenge = challenge(nonce);
      client.send(Arrays.copyOf(challenge, 7));
      client.send(Arrays.copyOfRange(challenge, 7, challenge.length)).expect("00");
      byte[] theirs = client.read(32);
      byte[] proof = prove(TOKEN.proof("tutti store client 1", nonce, theirs));
      client.send(Arrays.copyOf(proof, 1)).send(Arrays.copyOfRange(proof, 1, 20));
      // The first request may come right after the proof.
      client.send(Arrays.copyOfRange(proof, 20, proof.length)).send(request(Wire.GET, "/k"));
      client.expect("00");
      byte[] answer = client.read(32);
      assertThat(answer).isEqualTo(TOKEN.proof("tutti store server 1", nonce, theirs));
      client.expect("00 00 00 00 00 00 00 00");
    }
  }

  @Simulated
  void noiseEndsOnlyItsOwnConnection() throws IOException {
    Random random = new Random(20261121);
    for (int i = 0; i < 50; i++) {
      byte[] noise = new byte[1 + random.nextInt(200)];
      random.nextBytes(noise);
      boolean greets = random.nextBoolean();
      try (RawClient client =
          greets
              ? greeted(server.port())
              : RawClient.connect(SimulatedHost.current().channels(), server.port())) {
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
    byte[] theirs = client.read(JobToken.NONCE_BYTES);
    return TOKEN.proof("tutti store client 1", nonce, theirs);
  }
}
