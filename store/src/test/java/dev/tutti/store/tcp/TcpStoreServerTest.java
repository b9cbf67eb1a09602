package dev.tutti.store.tcp;

import static dev.tutti.store.tcp.RawClient.request;
import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.tutti.Store;
import dev.tutti.StoreConnectionException;
import dev.tutti.StoreTimeoutException;
import dev.tutti.shared.FreePorts;
import dev.tutti.store.JobToken;
import dev.tutti.store.ManualTime;
import dev.tutti.store.ManualTime.Passing;
import java.io.IOException;
import java.net.Inet6Address;
import java.net.InetAddress;
import java.net.NetworkInterface;
import java.net.SocketException;
import java.nio.channels.spi.SelectorProvider;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Tests the server against misbehaving clients. */
class TcpStoreServerTest {
  private static final int KEY = Store.MAX_KEY_BYTES;

  private final LogCapture log = new LogCapture();
  private final TcpStoreServer server =
      new TcpStoreServer(InetAddress.getLoopbackAddress(), 0, JobToken.NONE);
  private final TcpStore good = new TcpStore("127.0.0.1", server.port());

  @AfterEach
  void theOthersDidNotNotice() {
    assertThat(good.add("alive", 1)).isEqualTo(1);
    good.close();
    server.close();
    log.close();
  }

  /** The client sends the header of a ClientHello, and reads the alert "unexpected message". */
  @Test
  void whereNoPortCanBeBoundAnotherAddressIsAdvised() {
    // Reserved for documentation, so no host has it.
    InetAddress foreign = InetAddress.ofLiteral("192.0.2.1");
    assertThatThrownBy(() -> new TcpStoreServer(foreign, 0))
        .isInstanceOf(StoreConnectionException.class)
        .hasMessageStartingWith("no port of 192.0.2.1 can be bound (")
        .hasMessageEndingWith("); choose another address");
  }

  @Test
  void aClientThatStartsTlsGetsAnAlert() throws IOException {
    try (RawClient client = RawClient.connect(server.port()).send("16 03 01 02 00")) {
      client.expect("15 03 03 00 02 02 0a").expectEnd();
      log.await(server.port(), "it starts TLS, which this server does not use; TUTTI_TLS must be");
    }
  }

  static Stream<Arguments> badRequests() {
    return Stream.of(
        Arguments.of("00 ce f7 85 3d", "magic number"),
        Arguments.of("00 04 00 00 00 00 00 00 00 2f 6b 65 79", "PyTorch 2.0 or older"),
        Arguments.of("02 04 00 00 00 00 00 00 00 2f 6b 65 79", "first byte is 0x02"),
        Arguments.of("ce f7 85 3c 01", "the protocol of PyTorch 2.1"),
        Arguments.of("47 45 54 20 2f 20 48 54 54 50", "first byte is 0x47"),
        Arguments.of("00 ce f7 85 3c 00 ce f7 85 3c", "unknown query 0"),
        Arguments.of("00 ce f7 85 3c 13", "unknown query 19"),
        Arguments.of("00 ce f7 85 3c ff", "unknown query 255"),
        Arguments.of("00 ce f7 85 3c 03 ff ff ff ff ff ff ff ff", "-1 bytes in a key"),
        Arguments.of("00 ce f7 85 3c 03 02 20 00 00 00 00 00 00", "8194 bytes in a key"),
        Arguments.of(
            "00 ce f7 85 3c 01 01 00 00 00 00 00 00 00 6b 01 00 80 00 00 00 00 00",
            "8388609 bytes in a value"),
        Arguments.of(
            "00 ce f7 85 3c 01 01 00 00 00 00 00 00 00 6b 00 00 00 00 00 00 00 80",
            "-9223372036854775808 bytes in a value"),
        Arguments.of("00 ce f7 85 3c 05 01 00 02 00 00 00 00 00", "131073 keys in a request"),
        Arguments.of("00 ce f7 85 3c 0b ff ff ff ff ff ff ff 7f", "keys in a request"),
        Arguments.of(
            "00 ce f7 85 3c 12 01 00 00 00 00 00 00 00 6b 00 00 00 00 00 00 00 00",
            "a barrier cannot have 0 members"));
  }

  @ParameterizedTest
  @MethodSource("badRequests")
  void dropsAClientThatSendsNoRequest(String hex, String reason) throws IOException {
    try (RawClient client = RawClient.connect(server.port()).send(hex)) {
      client.expectEnd();
      log.await(server.port(), "drops client 127.0.0.1:" + client.port() + ":");
      log.await(server.port(), reason);
    }
  }

  @Test
  void saysWhetherItServes() {
    TcpStoreServer own = new TcpStoreServer(InetAddress.getLoopbackAddress(), 0);
    assertThat(own.isRunning()).isTrue();
    own.close();
    assertThat(own.isRunning()).isFalse();
  }

  @Test
  void takesWhatIsJustWithinTheLimits() throws IOException {
    String key = "/" + "k".repeat(KEY);
    byte[] value = new byte[Store.MAX_VALUE_BYTES];
    value[value.length - 1] = 9;
    try (RawClient client = RawClient.greeted(server.port())) {
      client.send(request(Wire.SET, key, value)).send(request(Wire.GET, key));
      client.expect("00 00 80 00 00 00 00 00");
      byte[] got = client.read(value.length);
      assertThat(got).isEqualTo(value);
      client.send(request(Wire.CHECK, (long) Store.MAX_KEYS));
      byte[] one = request(0, key.substring(0, 2));
      byte[] many = new byte[(one.length - 1) * 1024];
      for (int i = 0; i < 1024; i++) {
        System.arraycopy(one, 1, many, i * (one.length - 1), one.length - 1);
      }
      for (int i = 0; i < Store.MAX_KEYS / 1024; i++) {
        client.send(many);
      }
      client.expect("01");
    }
  }

  @Test
  void waitsForTheRestOfAGreeting() throws IOException {
    try (RawClient client = RawClient.connect(server.port())) {
      for (String piece : List.of("00", "ce f7", "85", "3c", "0d", "01 02", "03 04")) {
        client.send(piece);
      }
      client.expect("01 02 03 04");
    }
  }

  @Test
  void letsASlowClientFinishWhileOthersAreServed() throws IOException {
    byte[] request = request(Wire.SET, "/slow", "a value that comes in pieces");
    try (RawClient slow = RawClient.greeted(server.port())) {
      for (byte piece : request) {
        assertThat(good.check(List.of("slow"))).isFalse();
        slow.send(new byte[] {piece});
      }
      assertThat(good.get("slow")).asString(UTF_8).isEqualTo("a value that comes in pieces");
    }
  }

  @Test
  void setsNothingThatHasNotComeCompletely() throws IOException {
    byte[] request = request(Wire.SET, "/cut", "value");
    for (int length = 1; length < request.length; length++) {
      try (RawClient client = RawClient.greeted(server.port())) {
        client.send(Arrays.copyOf(request, length));
        client.endOutput();
        client.expectEnd();
      }
    }
    assertThat(good.check(List.of("cut"))).isFalse();
  }

  @Test
  void answersAClientThatHasSentItsLastRequest() throws IOException {
    good.set("big", new byte[Store.MAX_VALUE_BYTES]);
    good.check(List.of("big"));
    try (RawClient client = RawClient.greeted(server.port())) {
      client.send(request(Wire.GET, "/big")).send(request(Wire.PING)).send("05 06 07 08");
      client.endOutput();
      client.expect("00 00 80 00 00 00 00 00");
      assertThat(client.read(Store.MAX_VALUE_BYTES)).hasSize(Store.MAX_VALUE_BYTES);
      client.expect("05 06 07 08").expectEnd();
    }
  }

  @Test
  void forgetsTheWaitsOfAClientThatLeft() throws Exception {
    try (RawClient popping = RawClient.greeted(server.port());
        RawClient waiting = RawClient.greeted(server.port())) {
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
    // The clock stands still, so the server gets the time that it needs for its answer.
    TcpStoreOptions still =
        TcpStoreOptions.of("127.0.0.1", server.port()).withTime(new ManualTime());
    try (TcpStore store = new TcpStore(still)) {
      assertThatThrownBy(() -> store.barrier("barrier", 2, Duration.ZERO))
          .isInstanceOf(StoreTimeoutException.class)
          .hasMessageContaining("1 of 2");
    }
  }

  @Test
  void dropsAClientThatNeverReadsItsReplies() throws IOException {
    byte[] request = request(Wire.GET, "/big");
    ManualTime time = new ManualTime();
    try (TcpStoreServer impatient =
            new TcpStoreServer(
                InetAddress.getLoopbackAddress(),
                0,
                JobToken.NONE,
                null,
                time,
                SelectorProvider.provider());
        TcpStore setter = new TcpStore("127.0.0.1", impatient.port());
        RawClient client = RawClient.greeted(impatient.port())) {
      setter.set("big", new byte[Store.MAX_VALUE_BYTES]);
      setter.check(List.of("big"));
      client.send(request).expect("00 00 80 00 00 00 00 00");
      assertThat(client.read(Store.MAX_VALUE_BYTES)).hasSize(Store.MAX_VALUE_BYTES);
      time.pass(Passing.ALL);
      assertThatThrownBy(
              () -> {
                while (true) {
                  client.send(request);
                }
              })
          .isInstanceOf(IOException.class);
      int port = impatient.port();
      log.await(port, "drops client 127.0.0.1:" + client.port() + ":");
      log.await(port, "has not read its replies");
    }
  }

  @Test
  void servesRepliesFarBeyondWhatItHoldsForAClient() throws IOException {
    byte[] value = new byte[300_000];
    new Random(5).nextBytes(value);
    good.set("value", value);
    good.check(List.of("value"));
    int count = 100;
    try (RawClient client = RawClient.greeted(server.port())) {
      for (int i = 0; i < count; i++) {
        client.send(request(Wire.GET, "/value"));
      }
      for (int i = 0; i < count; i++) {
        client.expect("e0 93 04 00 00 00 00 00");
        assertThat(client.read(value.length)).isEqualTo(value);
      }
    }
  }

  @Test
  void takesLittleMemoryToSendManyLargeValues() throws IOException {
    Assumptions.assumeTrue(Files.exists(Path.of("/proc/self/status")), "reads /proc");
    int count = 32;
    Object[] keys = new Object[1 + count];
    Arrays.fill(keys, "/big");
    keys[0] = (long) count;
    Process child = ServerChild.start("");
    try {
      int port = Integer.parseInt(child.inputReader().readLine());
      try (TcpStore setter = new TcpStore("127.0.0.1", port);
          RawClient slow = RawClient.greeted(port);
          RawClient reader = RawClient.greeted(port)) {
        setter.set("big", new byte[Store.MAX_VALUE_BYTES]);
        setter.check(List.of("big"));
        long before = ServerChild.peakMemory(child);
        slow.send(request(Wire.MULTI_GET, keys));
        reader.send(request(Wire.MULTI_GET, keys));
        for (int i = 0; i < count; i++) {
          reader.expect("00 00 80 00 00 00 00 00");
          assertThat(reader.read(Store.MAX_VALUE_BYTES)).hasSize(Store.MAX_VALUE_BYTES);
        }
        // A copy of all values takes 256 MiB.
        assertThat(ServerChild.peakMemory(child) - before).isLessThan(64 << 10);
        assertThat(setter.add("alive", 1)).isEqualTo(1);
      }
    } finally {
      child.destroyForcibly();
    }
  }

  @Test
  void dropsAClientWithTooManyWaits() throws IOException {
    try (RawClient client = RawClient.greeted(server.port())) {
      for (int i = 0; i <= ServerConnection.MAX_WAITS; i++) {
        client.send(request(Wire.WAIT, 1L, "/never" + i));
      }
      client.expectEnd();
      log.await(server.port(), "more than 64 waits");
    }
  }

  @Test
  void endsSeveralWaitsOfOneClientAndCancelsTheRest() throws IOException {
    try (RawClient client = RawClient.greeted(server.port())) {
      client.send(request(Wire.WAIT, 1L, "/a")).send(request(Wire.WAIT, 1L, "/b"));
      client.send("0d 01 02 03 04").expect("01 02 03 04");
      good.set("a", "1");
      client.expect("00");
      client.send("0c").expect("01");
      good.set("b", "1");
      client.send("0d 01 02 03 04").expect("01 02 03 04");
    }
  }

  @Test
  void wakesOneOfSeveralC10dPopsButEveryLook() throws IOException {
    try (RawClient first = RawClient.greeted(server.port());
        RawClient second = RawClient.greeted(server.port());
        RawClient look = RawClient.greeted(server.port())) {
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

  @Test
  void aC10dPopIsWokenThoughOneBeforeItMissesAnotherKey() throws IOException {
    try (RawClient both = RawClient.greeted(server.port());
        RawClient pop = RawClient.greeted(server.port())) {
      both.send(request(Wire.WAIT, 2L, "/q", "/x")).send("0d 01 00 00 00").expect("01 00 00 00");
      pop.send(request(Wire.WAIT, 1L, "/q")).send("0d 02 00 00 00").expect("02 00 00 00");
      good.queuePush("q", new byte[] {7});
      pop.expect("00");
      good.set("x", "value");
      both.expect("00");
    }
  }

  @ParameterizedTest
  @ValueSource(longs = {1, 2, 3, 4})
  void survivesRandomBytes(long seed) throws IOException {
    Random random = new Random(seed);
    for (int round = 0; round < 150; round++) {
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

  @ParameterizedTest
  @ValueSource(longs = {11, 12})
  void survivesDamagedRequests(long seed) throws IOException {
    Random random = new Random(seed);
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
    for (int round = 0; round < 300; round++) {
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
    try (RawClient client =
        greeted ? RawClient.greeted(server.port()) : RawClient.connect(server.port())) {
      int cut = random.nextInt(bytes.length + 1);
      client.send(bytes, 0, cut);
      client.send(bytes, cut, bytes.length - cut);
      switch (random.nextInt(3)) {
        case 0 -> client.endOutput();
        case 1 -> client.resetAtClose();
        default -> {}
      }
    } catch (SocketException e) {
      // The server may drop such a client while the client is still sending.
      assertThat(e).hasMessageMatching("(?i).*(reset|broken pipe|closed|aborted).*");
    }
  }

  @Test
  void saysWhichPortIsInUse() {
    assertThatThrownBy(() -> new TcpStoreServer(InetAddress.getLoopbackAddress(), server.port()))
        .isInstanceOf(StoreConnectionException.class)
        .hasMessageStartingWith("port " + server.port() + " of 127.0.0.1 is in use");
  }

  @ParameterizedTest
  @ValueSource(ints = {-1, 65536})
  void refusesAPortThatIsNone(int port) {
    assertThatThrownBy(() -> new TcpStoreServer(port))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("0 to 65535: " + port);
  }

  @Test
  void freesItsPortWhenClosed() throws IOException {
    TcpStoreServer first = new TcpStoreServer(FreePorts.one());
    TcpStore client = new TcpStore("127.0.0.1", first.port());
    client.set("key", "value");
    first.close();
    first.close();
    try (client;
        TcpStoreServer second = new TcpStoreServer(first.port());
        TcpStore fresh = new TcpStore("127.0.0.1", second.port())) {
      assertThat(fresh.keyCount()).isZero();
    }
  }

  @Test
  void servesIpv4AndIpv6WhenNoAddressIsGiven() throws SocketException {
    try (TcpStoreServer all = new TcpStoreServer(0);
        TcpStore four = new TcpStore("127.0.0.1", all.port());
        TcpStore name = new TcpStore("localhost", all.port())) {
      four.set("key", "value");
      assertThat(name.get("key")).asString(UTF_8).isEqualTo("value");
      if (hasIpv6()) {
        try (TcpStore six = new TcpStore("::1", all.port())) {
          assertThat(six.get("key")).asString(UTF_8).isEqualTo("value");
        }
      }
    }
  }

  private static boolean hasIpv6() throws SocketException {
    return NetworkInterface.networkInterfaces()
        .flatMap(NetworkInterface::inetAddresses)
        .anyMatch(address -> address instanceof Inet6Address && address.isLoopbackAddress());
  }
}
