package dev.tutti.store.tcp;

import static dev.tutti.store.tcp.RawClient.request;
import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.tutti.StoreConnectionException;
import dev.tutti.StoreTimeoutException;
import dev.tutti.fake.simulation.Simulated;
import dev.tutti.fake.simulation.SimulatedHost;
import dev.tutti.fake.simulation.Simulation;
import java.io.IOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.parallel.Isolated;

/** Tests a server against clients that misbehave, over a simulated network. */
@Isolated("threads of other tests in shared locks would bring in real time")
class MisbehavingClientsTest implements Simulated.Fixture {
  /** More than any buffer of a connection holds. */
  private static final int LARGE = 1 << 20;

  private static final int ROUNDS = 30;

  /** What a client sends, and why it is dropped. */
  private static final List<List<String>> BAD_REQUESTS =
      List.of(
          List.of("00 ce f7 85 3d", "magic number"),
          List.of("00 04 00 00 00 00 00 00 00 2f 6b 65 79", "PyTorch 2.0 or older"),
          List.of("02 04 00 00 00 00 00 00 00 2f 6b 65 79", "first byte is 0x02"),
          List.of("ce f7 85 3c 01", "the protocol of PyTorch 2.1"),
          List.of("47 45 54 20 2f 20 48 54 54 50", "first byte is 0x47"),
          List.of("16 00 00 00 00", "first byte is 0x16"),
          List.of("00 ce f7 85 3c 00 ce f7 85 3c", "unknown query 0"),
          List.of("00 ce f7 85 3c 13", "unknown query 19"),
          List.of("00 ce f7 85 3c ff", "unknown query 255"),
          List.of("00 ce f7 85 3c 03 ff ff ff ff ff ff ff ff", "-1 bytes in a key"),
          List.of("00 ce f7 85 3c 03 02 20 00 00 00 00 00 00", "8194 bytes in a key"),
          List.of(
              "00 ce f7 85 3c 01 01 00 00 00 00 00 00 00 6b 01 00 80 00 00 00 00 00",
              "8388609 bytes in a value"),
          List.of(
              "00 ce f7 85 3c 01 01 00 00 00 00 00 00 00 6b 00 00 00 00 00 00 00 80",
              "-9223372036854775808 bytes in a value"),
          List.of("00 ce f7 85 3c 05 01 00 02 00 00 00 00 00", "131073 keys in a request"),
          List.of("00 ce f7 85 3c 0b ff ff ff ff ff ff ff 7f", "keys in a request"),
          List.of(
              "00 ce f7 85 3c 12 01 00 00 00 00 00 00 00 6b 00 00 00 00 00 00 00 00",
              "a barrier cannot have 0 members"));

  private LogCapture log;
  private TcpStoreServer server;
  private TcpStore good;

  @Override
  public void open() {
    log = new LogCapture();
    server = StoreWorld.server(0);
    good = new TcpStore(StoreWorld.options(server.port()));
  }

  @Override
  public void close() {
    assertThat(good.add("alive", 1)).isEqualTo(1);
    good.close();
    server.close();
    log.close();
  }

  private RawClient connect() throws IOException {
    return RawClient.connect(SimulatedHost.current().channels(), server.port());
  }

  private RawClient greeted() throws IOException {
    return StoreWorld.greeted(server.port());
  }

  private void awaitLog(String text) {
    awaitLog(server, text);
  }

  private void awaitLog(TcpStoreServer of, String text) {
    Simulation.until(
        () -> log.messages(of.port()).stream().anyMatch(message -> message.contains(text)));
  }

  /** Each client has a server of its own, since a server says little of many clients. */
  @Simulated
  void dropsAClientThatSendsNoRequest() throws IOException {
    for (List<String> bad : BAD_REQUESTS) {
      try (TcpStoreServer own = StoreWorld.server(0);
          RawClient client =
              RawClient.connect(SimulatedHost.current().channels(), own.port())
                  .send(bad.getFirst())) {
        client.expectEnd();
        awaitLog(own, "drops client 127.0.0.1:" + client.port() + ":");
        awaitLog(own, bad.getLast());
      }
    }
  }

  /** The client sends a ClientHello in many pieces, and reads the alert "unexpected message". */
  @Simulated
  void aClientThatStartsTlsGetsAnAlert() throws IOException {
    try (RawClient client = connect().send("16 03 01 02 00")) {
      for (int i = 0; i < 0x200; i++) {
        client.send("01");
      }
      client.expect("15 03 03 00 02 02 0a").expectEnd();
      awaitLog("it starts TLS, which this server does not use; TUTTI_TLS must be");
    }
  }

  @Simulated
  void waitsForTheRestOfAGreeting() throws IOException {
    try (RawClient client = connect()) {
      for (String piece : List.of("00", "ce f7", "85", "3c", "0d", "01 02", "03 04")) {
        client.send(piece);
      }
      client.expect("01 02 03 04");
    }
  }

  @Simulated
  void letsASlowClientFinishWhileOthersAreServed() throws IOException {
    byte[] request = request(Wire.SET, "/slow", "a value that comes in pieces");
    try (RawClient slow = greeted()) {
      for (byte piece : request) {
        assertThat(good.check(List.of("slow"))).isFalse();
        slow.send(new byte[] {piece});
      }
      assertThat(good.get("slow")).asString(UTF_8).isEqualTo("a value that comes in pieces");
    }
  }

  @Simulated
  void setsNothingThatHasNotComeCompletely() throws IOException {
    byte[] request = request(Wire.SET, "/cut", "value");
    for (int length = 1; length < request.length; length++) {
      try (RawClient client = greeted()) {
        client.send(Arrays.copyOf(request, length));
        client.endOutput();
        client.expectEnd();
      }
    }
    assertThat(good.check(List.of("cut"))).isFalse();
  }

  @Simulated
  void answersAClientThatHasSentItsLastRequest() throws IOException {
    good.set("big", new byte[LARGE]);
    good.check(List.of("big"));
    try (RawClient client = greeted()) {
      client.send(request(Wire.GET, "/big")).send(request(Wire.PING)).send("05 06 07 08");
      client.endOutput();
      client.expect("00 00 10 00 00 00 00 00");
      assertThat(client.read(LARGE)).hasSize(LARGE);
      client.expect("05 06 07 08").expectEnd();
    }
  }

  @Simulated
  void forgetsTheWaitsOfAClientThatLeft() throws Exception {
    try (RawClient popping = greeted();
        RawClient waiting = greeted()) {
      popping.send(request(Wire.TAKE, "/queue"));
      waiting.send(request(Wire.BARRIER, "/barrier", 2L));
      popping.endOutput();
      waiting.endOutput();
      popping.expectEnd();
      waiting.expectEnd();
    }
    good.queuePush("queue", new byte[] {1});
    assertThat(good.queuePop("queue", Duration.ofSeconds(10))).containsExactly(1);
    assertThat(good.check(List.of("queue"))).isFalse();
    assertThatThrownBy(() -> good.barrier("barrier", 2, Duration.ofSeconds(1)))
        .isInstanceOf(StoreTimeoutException.class)
        .hasMessageContaining("1 of 2");
  }

  @Simulated
  void dropsAClientThatNeverReadsItsReplies() throws IOException {
    byte[] request = request(Wire.GET, "/big");
    good.set("big", new byte[LARGE]);
    good.check(List.of("big"));
    try (RawClient client = greeted()) {
      client.send(request).expect("00 00 10 00 00 00 00 00");
      assertThat(client.read(LARGE)).hasSize(LARGE);
      assertThatThrownBy(
              () -> {
                while (true) {
                  client.send(request);
                }
              })
          .isInstanceOf(IOException.class);
      awaitLog("drops client 127.0.0.1:" + client.port() + ":");
      awaitLog("has not read its replies");
    }
  }

  @Simulated
  void dropsAClientWithTooManyWaits() throws IOException {
    try (RawClient client = greeted()) {
      for (int i = 0; i <= ServerConnection.MAX_WAITS; i++) {
        client.send(request(Wire.WAIT, 1L, "/never" + i));
      }
      client.expectEnd();
      awaitLog("more than 64 waits");
    }
  }

  @Simulated
  void endsSeveralWaitsOfOneClientAndCancelsTheRest() throws IOException {
    try (RawClient client = greeted()) {
      client.send(request(Wire.WAIT, 1L, "/a")).send(request(Wire.WAIT, 1L, "/b"));
      client.send("0d 01 02 03 04").expect("01 02 03 04");
      good.set("a", "1");
      client.expect("00");
      client.send("0c").expect("01");
      good.set("b", "1");
      client.send("0d 01 02 03 04").expect("01 02 03 04");
    }
  }

  @Simulated
  void wakesOneOfSeveralC10dPopsButEveryLook() throws IOException {
    try (RawClient first = greeted();
        RawClient second = greeted();
        RawClient look = greeted()) {
      first.send(request(Wire.WAIT, 1L, "/q")).send("0d 01 00 00 00").expect("01 00 00 00");
      second.send(request(Wire.WAIT, 1L, "/q")).send("0d 02 00 00 00").expect("02 00 00 00");
      look.send(request(Wire.LOOK, 1L, "/q")).send("0d 03 00 00 00").expect("03 00 00 00");
      good.queuePush("q", new byte[] {7});
      first.expect("00");
      look.expect("00");
      first.send(request(Wire.QUEUE_POP, "/q"));
      first.expect("01 00 00 00 00 00 00 00 01 00 00 00 00 00 00 00 07");
      second.send("0d 04 00 00 00").expect("04 00 00 00");
    }
  }

  @Simulated
  void aC10dPopIsWokenThoughOneBeforeItMissesAnotherKey() throws IOException {
    try (RawClient both = greeted();
        RawClient pop = greeted()) {
      both.send(request(Wire.WAIT, 2L, "/q", "/x")).send("0d 01 00 00 00").expect("01 00 00 00");
      pop.send(request(Wire.WAIT, 1L, "/q")).send("0d 02 00 00 00").expect("02 00 00 00");
      good.queuePush("q", new byte[] {7});
      pop.expect("00");
      good.set("x", "value");
      both.expect("00");
    }
  }

  @Simulated
  void survivesRandomBytes() throws IOException {
    Random random = new Random(Simulation.time().random());
    for (int round = 0; round < ROUNDS; round++) {
      byte[] bytes = new byte[1 + random.nextInt(2000)];
      random.nextBytes(bytes);
      boolean greeted = random.nextInt(10) > 0;
      if (greeted && random.nextBoolean()) {
        bytes[0] = (byte) random.nextInt(20);
        // Small lengths get further than random ones.
        for (int i = 1; i + 8 < bytes.length; i += 9 + random.nextInt(5)) {
          Arrays.fill(bytes, i + 1, i + 8, (byte) 0);
        }
      }
      abuse(greeted, bytes, random);
    }
  }

  @Simulated
  void survivesDamagedRequests() throws IOException {
    Random random = new Random(Simulation.time().random());
    List<byte[]> valid = new ArrayList<>();
    valid.add(request(Wire.SET, "/k", "value"));
    valid.add(request(Wire.COMPARE_SET, "/k", "value", "other"));
    valid.add(request(Wire.ADD, "/n", 3L));
    valid.add(request(Wire.WAIT, 2L, "/k", "/l"));
    valid.add(request(Wire.APPEND, "/k", "!"));
    valid.add(request(Wire.MULTI_SET, 2L, "/k", "a", "/l", "b"));
    valid.add(request(Wire.MULTI_GET, 2L, "/k", "/l"));
    valid.add(request(Wire.QUEUE_PUSH, "/q", "v"));
    valid.add(request(Wire.QUEUE_POP, "/q"));
    valid.add(request(Wire.BARRIER, "/b", 3L));
    valid.add(request(Wire.SWAP, "/k", 1L, "a", "b"));
    valid.add(request(Wire.FETCH, 1L, "/l"));
    valid.add(request(Wire.TAKE, "/q"));
    valid.add(request(Wire.CANCEL_WAIT));
    for (int round = 0; round < ROUNDS; round++) {
      byte[] bytes = new byte[0];
      for (int i = 0; i < 4; i++) {
        byte[] next = valid.get(random.nextInt(valid.size())).clone();
        if (random.nextBoolean()) {
          next[random.nextInt(next.length)] ^= (byte) (1 << random.nextInt(8));
        }
        int keep = random.nextInt(5) == 0 ? random.nextInt(next.length) : next.length;
        byte[] joined = Arrays.copyOf(bytes, bytes.length + keep);
        System.arraycopy(next, 0, joined, bytes.length, keep);
        bytes = joined;
      }
      abuse(true, bytes, random);
    }
  }

  private void abuse(boolean greeted, byte[] bytes, Random random) throws IOException {
    try (RawClient client = greeted ? greeted() : connect()) {
      int cut = random.nextInt(bytes.length + 1);
      client.send(bytes, 0, cut);
      client.send(bytes, cut, bytes.length - cut);
      switch (random.nextInt(3)) {
        case 0 -> client.endOutput();
        case 1 -> client.resetAtClose();
        default -> {}
      }
    } catch (IOException e) {
      // The server may drop such a client while the client is still sending.
      assertThat(e).hasMessageMatching("(?i).*(reset|broken pipe|closed|aborted).*");
    }
  }

  @Simulated
  void saysWhichPortIsInUse() {
    assertThatThrownBy(() -> StoreWorld.server(server.port()))
        .isInstanceOf(StoreConnectionException.class)
        .hasMessageStartingWith("port " + server.port() + " of 127.0.0.1 is in use");
  }
}
