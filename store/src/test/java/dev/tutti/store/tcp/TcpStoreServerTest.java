package dev.tutti.store.tcp;

import static dev.tutti.store.tcp.RawClient.request;
import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.tutti.Store;
import dev.tutti.StoreConnectionException;
import dev.tutti.shared.FreePorts;
import dev.tutti.store.JobToken;
import java.io.IOException;
import java.net.Inet6Address;
import java.net.InetAddress;
import java.net.NetworkInterface;
import java.net.SocketException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * Tests what of a server depends on the system, and one client that misbehaves; {@code
 * MisbehavingClientsTest} simulates more.
 */
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
  void dropsAClientThatSendsNoRequest() throws IOException {
    try (RawClient client = RawClient.connect(server.port()).send("47 45 54 20 2f 20 48 54")) {
      client.expectEnd();
      log.await(server.port(), "drops client 127.0.0.1:" + client.port() + ":");
      log.await(server.port(), "first byte is 0x47");
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
