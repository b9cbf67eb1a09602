package dev.tutti.store.tcp;

import static dev.tutti.store.tcp.RawClient.request;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.tutti.Store;
import dev.tutti.StoreConnectionException;
import dev.tutti.StoreException;
import java.io.BufferedReader;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Order;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Tests that clients cannot bring down a server with a heap of 64 MiB. */
@Timeout(value = 300, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
@Order(1)
class TcpStoreExhaustionTest {
  @TempDir Path folder;
  private Path log;
  private Process child;
  private BufferedReader out;
  private int port;

  @BeforeEach
  void startServer() throws IOException {
    start(List.of());
  }

  private void start(List<String> before) throws IOException {
    log = folder.resolve("log");
    child = ServerChild.start("", log.toFile(), before);
    out = child.inputReader();
    port = Integer.parseInt(out.readLine());
  }

  @AfterEach
  void endServer() {
    child.destroyForcibly();
  }

  private TcpStore connect() {
    return new TcpStore(TcpStoreOptions.of("127.0.0.1", port).withTimeout(Duration.ofMinutes(2)));
  }

  private void requireServed() throws IOException {
    try (TcpStore good = connect()) {
      assertThat(good.add("alive", 1)).isPositive();
    } catch (StoreConnectionException e) {
      throw new AssertionError(Files.readString(log), e);
    }
    long deadline = System.nanoTime() + TimeUnit.MINUTES.toNanos(2);
    while (!takesALargeValue()) {
      assertThat(System.nanoTime()).as(Files.readString(log)).isLessThan(deadline);
    }
    child.outputWriter().append('\n').flush();
    assertThat(out.readLine()).isEqualTo("true");
  }

  /**
   * Tries to store a value; this may fail while the server is still reading what others have sent.
   */
  private boolean takesALargeValue() {
    try (TcpStore good = connect()) {
      good.set("large", new byte[Store.MAX_VALUE_BYTES]);
      assertThat(good.get("large")).hasSize(Store.MAX_VALUE_BYTES);
      return good.deleteKey("large");
    } catch (StoreException e) {
      return false;
    }
  }

  private List<String> logged(String text) throws IOException {
    return Files.readAllLines(log).stream().filter(line -> line.contains(text)).toList();
  }

  /** Returns the lines about single events, without those that only count how many more came. */
  private List<String> loggedSingly(String text) throws IOException {
    return logged(text).stream()
        .filter(line -> !line.matches(".* more.* in the last \\d+ s; the last one: .*"))
        .toList();
  }

  private void awaitLogged(String text) throws IOException {
    long deadline = System.nanoTime() + TimeUnit.MINUTES.toNanos(2);
    while (logged(text).isEmpty()) {
      assertThat(System.nanoTime())
          .as("no log with " + text + " but " + Files.readString(log))
          .isLessThan(deadline);
      LockSupport.parkNanos(TimeUnit.MILLISECONDS.toNanos(5));
    }
  }

  /**
   * Sends keys of 8 KiB until the server closes the connection; returns how many keys it accepted.
   */
  private static int sendKeys(RawClient client, int count) throws IOException {
    byte[] key = Arrays.copyOfRange(request(0, "/" + "k".repeat(8191)), 1, 8 + 8193);
    int sent = 0;
    while (sent < count && client.sendIfOpen(key)) {
      sent++;
    }
    return sent;
  }

  @Test
  void refusesARequestThatTakesMoreThanItsShare() throws IOException {
    try (RawClient client = RawClient.greeted(port)) {
      client.send(request(Wire.CHECK, (long) Store.MAX_KEYS));
      assertThat(sendKeys(client, Store.MAX_KEYS)).isLessThan(4096);
    }
    requireServed();
    assertThat(logged("drops client"))
        .singleElement()
        .asString()
        .contains("127.0.0.1", "an eighth of this server's heap");
  }

  @Test
  void dropsWhoHoldsMostWhereAllTogetherTakeMoreThanTheirShare() throws IOException {
    List<RawClient> clients = new ArrayList<>();
    try (RawClient small = RawClient.greeted(port)) {
      small.send(request(Wire.WAIT, 1L, "/come"));
      for (int i = 0; i < 24; i++) {
        RawClient client = RawClient.greeted(port);
        clients.add(client);
        client.send(request(Wire.CHECK, (long) Store.MAX_KEYS));
        sendKeys(client, 256);
      }
      requireServed();
      try (TcpStore good = connect()) {
        good.set("come", "here");
      }
      small.expect("00");
    } finally {
      for (RawClient client : clients) {
        client.close();
      }
    }
    assertThat(logged("a quarter of this server's heap")).isNotEmpty();
  }

  @Test
  void refusesValuesThatTakeMoreThanTheShareOfAllKeys() throws IOException {
    int stored = 0;
    try (TcpStore greedy = connect()) {
      while (stored < 64) {
        greedy.set("value " + stored, new byte[1 << 20]);
        assertThat(greedy.check(List.of("value " + stored))).isTrue();
        stored++;
      }
    } catch (StoreException e) {
      assertThat(stored).isBetween(16, 32);
    }
    try (TcpStore good = connect()) {
      for (int i = 0; i < 12; i++) {
        good.deleteKey("value " + i);
      }
    }
    requireServed();
    assertThat(logged("keys and values")).isNotEmpty();
  }

  @Test
  void refusesWaitsForMoreKeysThanItsShare() throws IOException {
    Object[] keys = new Object[1 + 20_000];
    keys[0] = 20_000L;
    for (int i = 1; i < keys.length; i++) {
      keys[i] = "/" + i;
    }
    try (RawClient client = RawClient.greeted(port)) {
      byte[] wait = request(Wire.WAIT, keys);
      int sent = 0;
      while (sent < 60 && client.sendIfOpen(wait)) {
        sent++;
      }
      client.expectEndAfterAnything();
    }
    requireServed();
  }

  @Test
  void refusesARequestWhoseAnswerTakesMoreThanItsShare() throws IOException {
    Object[] keys = new Object[1 + Store.MAX_KEYS];
    Arrays.fill(keys, "/v");
    keys[0] = (long) Store.MAX_KEYS;
    try (TcpStore good = connect();
        RawClient client = RawClient.greeted(port)) {
      good.set("v", new byte[4096]);
      assertThat(good.check(List.of("v"))).isTrue();
      boolean _ = client.sendIfOpen(request(Wire.MULTI_GET, keys));
      client.expectEndAfterAnything();
    }
    requireServed();
  }

  /** Counts values that have left their queue while clients do not read them. */
  @Test
  void dropsWhoDoesNotReadWhatItPopped() throws IOException {
    List<RawClient> clients = new ArrayList<>();
    try (RawClient waits = RawClient.greeted(port)) {
      waits.send(request(Wire.WAIT, 1L, "/come"));
      for (int i = 0; i < 16; i++) {
        RawClient client = RawClient.greeted(port);
        clients.add(client);
        if (client.sendIfOpen(
            request(Wire.QUEUE_PUSH, "/q" + i, new byte[Store.MAX_VALUE_BYTES]))) {
          boolean _ = client.sendIfOpen(request(Wire.QUEUE_POP, "/q" + i));
        }
      }
      requireServed();
      try (TcpStore good = connect()) {
        good.set("come", "value");
      }
      waits.expect("00");
    } finally {
      for (RawClient client : clients) {
        client.close();
      }
    }
    assertThat(logged("OutOfMemory")).isEmpty();
    assertThat(logged(" bytes for it and ")).isNotEmpty();
  }

  @Test
  void servesOthersBesideManySilentConnections() throws IOException {
    List<RawClient> silent = new ArrayList<>();
    try {
      for (int i = 0; i < 10_000; i++) {
        silent.add(RawClient.connect(port));
      }
      requireServed();
    } finally {
      for (RawClient client : silent) {
        client.close();
      }
    }
    assertThat(Files.readAllLines(log)).hasSizeLessThan(40);
  }

  @Test
  void logsAFloodOfBadClientsInAFewLines() throws IOException {
    // A busy machine takes longer for each, and a smaller flood must not be logged in more lines.
    long until = System.nanoTime() + TimeUnit.MINUTES.toNanos(2);
    for (int i = 0; i < 3000 && System.nanoTime() < until; i++) {
      try (RawClient client = RawClient.connect(port).send("47 45 54")) {
        client.expectEndAfterAnything();
      }
    }
    requireServed();
    assertThat(logged("first byte is 0x47")).hasSizeBetween(3, 8);
    assertThat(Files.readAllLines(log)).hasSizeLessThan(40);
  }

  @Test
  void servesOnWithoutDescriptorsAndAcceptsAgain() throws Exception {
    Path prlimit = Path.of("/usr/bin/prlimit");
    Assumptions.assumeTrue(Files.isExecutable(prlimit), "no prlimit to bound descriptors with");
    endServer();
    start(List.of(prlimit.toString(), "--nofile=160:160"));
    List<RawClient> many = new ArrayList<>();
    try (TcpStore good = connect()) {
      assertThat(good.add("alive", 1)).isPositive();
      for (int i = 0; i < 200; i++) {
        many.add(RawClient.greeted(port).send(request(Wire.PING)).send("05 06 07 08"));
      }
      awaitLogged("cannot accept clients");
      many.getFirst().expect("05 06 07 08");
      long until = System.nanoTime() + TimeUnit.SECONDS.toNanos(2);
      long calls = 1;
      while (System.nanoTime() < until) {
        assertThat(good.add("alive", 1)).isEqualTo(++calls);
      }
      for (RawClient client : many.subList(0, 150)) {
        client.close();
      }
      for (RawClient client : many.subList(150, 200)) {
        client.expect("05 06 07 08");
      }
    } finally {
      for (RawClient client : many) {
        client.close();
      }
    }
    requireServed();
    assertThat(loggedSingly("cannot accept clients")).hasSizeLessThan(4);
  }

  @Test
  void silentConnectionsGoWhereDescriptorsAreNeeded() throws Exception {
    Path prlimit = Path.of("/usr/bin/prlimit");
    Assumptions.assumeTrue(Files.isExecutable(prlimit), "no prlimit to bound descriptors with");
    endServer();
    start(List.of(prlimit.toString(), "--nofile=160:160"));
    List<RawClient> silent = new ArrayList<>();
    try {
      for (int i = 0; i < 200; i++) {
        silent.add(RawClient.connect(port));
      }
      awaitLogged("cannot accept clients");
      requireServed();
    } finally {
      for (RawClient client : silent) {
        client.close();
      }
    }
    assertThat(loggedSingly("other clients cannot be accepted")).hasSize(3);
  }

  @Test
  void aClientLearnsWhichLimitRefusedItsValue() throws IOException {
    try (TcpStore store = connect();
        TcpStore other = connect()) {
      for (int i = 0; i < 5; i++) {
        store.set("value/" + i, new byte[4 << 20]);
        assertThat(store.check("value/" + i)).isTrue();
      }
      store.set("value/5", new byte[4 << 20]);
      assertThatThrownBy(() -> store.check("value/5"))
          .isExactlyInstanceOf(StoreException.class)
          .hasMessageMatching(
              "store server at 127.0.0.1:%d refused a request: this server holds \\d+ bytes of"
                      .formatted(port)
                  + " keys and values and would need \\d+ more for '/value/5'; its limit is \\d+,"
                  + " three eighths of its heap \\(-Xmx\\); values set just before may be lost");
      // The client and others go on.
      assertThat(other.check("value/4")).isTrue();
      assertThat(store.deleteKey("value/4")).isTrue();
      store.set("value/5", new byte[1 << 20]);
      assertThat(store.check("value/5")).isTrue();
    }
  }
}
