package dev.tutti.store.tcp;

import static dev.tutti.store.tcp.RawClient.request;
import static dev.tutti.store.tcp.ScriptedServer.ended;
import static java.nio.charset.StandardCharsets.ISO_8859_1;
import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.sun.management.ThreadMXBean;
import dev.tutti.StoreClosedException;
import dev.tutti.StoreConnectionException;
import dev.tutti.StoreException;
import dev.tutti.StoreSilentException;
import dev.tutti.StoreTimeoutException;
import dev.tutti.shared.FreePorts;
import dev.tutti.store.JobToken;
import dev.tutti.store.ManualTime;
import dev.tutti.store.ManualTime.Passing;
import dev.tutti.store.tcp.ScriptedServer.Opened;
import dev.tutti.store.tcp.ScriptedServer.Peer;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Order;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.parallel.Execution;
import org.junit.jupiter.api.parallel.ExecutionMode;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Tests the client, and the opening of stores, when things go wrong. */
@Order(1)
@Execution(ExecutionMode.CONCURRENT)
class TcpStoreFailureTest {
  private static final Duration LONG = Duration.ofSeconds(60);
  private static final Duration SHORT = Duration.ofMillis(300);

  /** A call may first give the server a second to answer, then to take it out of a barrier. */
  private static final Duration MOST = SHORT.plusSeconds(3);

  /** The longest time that a call of a short time-out may take on a busy machine. */
  private static final Duration SOON = Duration.ofSeconds(30);

  /** The fields of a line of /proc/net/tcp with the addresses of a connection. */
  private static final int LOCAL = 1;

  private static final int REMOTE = 2;

  private final ManualTime time = new ManualTime();
  private final ExecutorService threads = Executors.newCachedThreadPool();

  @AfterEach
  void endThreads() {
    threads.shutdownNow();
  }

  private static TcpStoreOptions options(int port) {
    return TcpStoreOptions.of("127.0.0.1", port).withTimeout(LONG);
  }

  /** Returns the options of a client whose clock the test moves. */
  private TcpStoreOptions manual(ScriptedServer server, Duration timeout) {
    return options(server.port()).withTimeout(timeout).withTime(time);
  }

  @Test
  void triesAgainUntilThereIsAServer() throws Exception {
    int port = FreePorts.one();
    Future<TcpStore> client = threads.submit(() -> new TcpStore(options(port)));
    // The client connects to this server first, and is turned away.
    try (ServerSocket early = new ServerSocket(port, 50, InetAddress.getLoopbackAddress())) {
      early.accept().close();
      early.accept().close();
    }
    try (TcpStoreServer server = new TcpStoreServer(port);
        TcpStore store = ended(client)) {
      store.set("key", "value");
      assertThat(store.get("key")).asString(UTF_8).isEqualTo("value");
      assertThat(server.port()).isEqualTo(port);
    }
  }

  @Test
  void givesUpAtTheDeadlineAndTellsWhatItTried() throws Exception {
    int port = FreePorts.one();
    long start = System.nanoTime();
    assertThatThrownBy(() -> new TcpStore(options(port).withTimeout(SHORT)))
        .isInstanceOf(StoreConnectionException.class)
        .hasMessageContaining("no store server at 127.0.0.1:" + port)
        .hasMessageContaining("within 300 ms")
        .hasMessageMatching("(?s).*, (1 attempt|[2-9] attempts|\\d{2,} attempts): .*");
    assertThatThrownBy(() -> new TcpStore(options(port).withTimeout(Duration.ofNanos(1))))
        .hasMessageContaining(", 1 attempt: ");
    assertThat(Duration.ofNanos(System.nanoTime() - start)).isBetween(SHORT, SOON);
  }

  @Test
  void givesUpOnAHostThatIsNone() {
    assertThatThrownBy(
            () -> new TcpStore(TcpStoreOptions.of("no-such-host.invalid", 1).withTimeout(SHORT)))
        .isInstanceOf(StoreConnectionException.class)
        .hasMessageContaining("no-such-host.invalid");
  }

  @Test
  void givesUpOnAServerThatNeverAnswers() throws Exception {
    try (ScriptedServer server = new ScriptedServer()) {
      Future<TcpStore> client = server.client(() -> new TcpStore(manual(server, SHORT)));
      try (Peer _ = server.accept()) {
        time.skip(SHORT);
        assertThatThrownBy(() -> ended(client))
            .hasCauseInstanceOf(StoreConnectionException.class)
            .hasMessageContaining("within 300 ms, 1 attempt: ")
            .hasMessageContaining(
                "the server there accepted the connection but did not answer in time, as a Gloo"
                    + " rank or another server that is not a store would");
      }
    }
  }

  @Test
  void tellsWhatItFoundThoughTheLastAttemptRunsOutOfTime() throws Exception {
    time.pass(Passing.PARKS);
    try (ScriptedServer server = new ScriptedServer()) {
      Future<TcpStore> client = server.client(() -> new TcpStore(manual(server, SHORT)));
      server.accept().close();
      try (Peer second = server.accept()) {
        assertThat(second.read(1)).isEqualTo(RawClient.hex("02"));
        time.skip(SHORT);
        assertThatThrownBy(() -> ended(client))
            .hasCauseInstanceOf(StoreConnectionException.class)
            .hasMessageContaining(", 2 attempts: ")
            .hasMessageContaining("the server there closed the connection, as a Gloo rank");
      }
    }
  }

  @ParameterizedTest
  @CsvSource({
    "HTTP/1.1 400 Bad Request, 'an HTTP server answers there; check MASTER_PORT'",
    "SSH-2.0-OpenSSH, 'begins with ''SSH-2.0-'', which is not a store server''s; check"
        + " MASTER_PORT'",
    "TuttiAer, 'an Aeron store server answers there; set TUTTI_STORE to aeron on this rank too'",
    "\\0\\1\\2\\3\\4\\5\\6\\200, 'begins with 00 01 02 03 04 05 06 80, which is not a store"
        + " server''s'"
  })
  void saysAtOnceWhatAnswersInsteadOfAStoreServer(String answer, String expected) throws Exception {
    try (ScriptedServer server = new ScriptedServer()) {
      Future<TcpStore> client = server.client(() -> new TcpStore(options(server.port())));
      try (Peer peer = server.accept()) {
        peer.send(answer.translateEscapes().getBytes(ISO_8859_1));
        assertThatThrownBy(() -> ended(client))
            .cause()
            .isExactlyInstanceOf(StoreException.class)
            .hasMessageStartingWith("no store server at 127.0.0.1:" + server.port() + ": ")
            .hasMessageContaining(expected);
      }
    }
  }

  @Test
  void aCallEndsThoughTheServerHangs() throws Exception {
    try (ScriptedServer server = new ScriptedServer();
        Opened opened = server.open(manual(server, LONG))) {
      Future<Long> call = server.client(() -> opened.store().add("key", 1));
      opened.main().expect(request(Wire.ADD, "/key", 1L));
      time.skipUnnoticed(LONG.minusSeconds(1));
      assertThat(call).isNotDone();
      time.skip(Duration.ofSeconds(1));
      assertThatThrownBy(() -> ended(call))
          .hasCauseInstanceOf(StoreTimeoutException.class)
          .hasMessageContaining("127.0.0.1:" + server.port());
      // The late reply is not mistaken for the reply to the next call, which uses a new connection.
      Future<Long> next = server.client(() -> opened.store().add("key", 2));
      try (Peer main = server.acceptMain()) {
        main.expect(request(Wire.ADD, "/key", 2L)).send("03 00 00 00 00 00 00 00");
        assertThat(ended(next)).isEqualTo(3);
      }
    }
  }

  @Test
  void aValueTakesMemoryOnlyAsItComes() throws Exception {
    try (ScriptedServer server = new ScriptedServer();
        Opened opened = server.openTutti(options(server.port()))) {
      Future<Long> taken =
          server.client(
              () -> {
                var threads = (ThreadMXBean) ManagementFactory.getThreadMXBean();
                long before = threads.getCurrentThreadAllocatedBytes();
                assertThatThrownBy(() -> opened.store().get("key", LONG))
                    .isInstanceOf(StoreConnectionException.class)
                    .hasMessageContaining("closed the connection");
                return threads.getCurrentThreadAllocatedBytes() - before;
              });
      // The length of a value of 1 GiB, and some of its bytes.
      opened.main().expectRead("/key").send("00 00 00 40 00 00 00 00").send(new byte[1000]);
      opened.main().close();
      assertThat(ended(taken)).isBetween(1L << 20, 16L << 20);
    }
  }

  @Test
  void aServerThatWasSilentForTwoCallsIsUsedAgain() throws Exception {
    try (ScriptedServer server = new ScriptedServer();
        Opened opened = server.open(manual(server, LONG))) {
      Future<Long> first = server.client(() -> opened.store().add("key", 1));
      opened.main().expect(request(Wire.ADD, "/key", 1L));
      time.skip(LONG);
      assertThatThrownBy(() -> ended(first)).hasCauseInstanceOf(StoreTimeoutException.class);
      Future<Long> second = server.client(() -> opened.store().add("key", 1));
      try (Peer _ = server.accept()) {
        time.skip(LONG);
        assertThatThrownBy(() -> ended(second)).hasCauseInstanceOf(StoreTimeoutException.class);
      }
      Future<Long> next = server.client(() -> opened.store().add("key", 2));
      try (Peer main = server.acceptMain()) {
        main.expect(request(Wire.ADD, "/key", 2L)).send("03 00 00 00 00 00 00 00");
        assertThat(ended(next)).isEqualTo(3);
      }
    }
  }

  @Test
  void aBarrierEndsSoonAfterItsDeadlineThoughTheServerHangs() throws Exception {
    endsInTimeThoughTheServerHangs(store -> store.barrier("key", 2, SHORT), Wire.BARRIER);
  }

  @Test
  void aGetEndsSoonAfterItsDeadlineThoughTheServerHangs() throws Exception {
    endsInTimeThoughTheServerHangs(store -> store.get("key", SHORT), Wire.FETCH);
  }

  @Test
  void aWaitEndsSoonAfterItsDeadlineThoughTheServerHangs() throws Exception {
    endsInTimeThoughTheServerHangs(store -> store.await(List.of("key"), SHORT), Wire.LOOK);
  }

  @Test
  void aGetEndsSoonAfterItsDeadlineThoughTheServerHangsInTheMiddleOfTheValue() throws Exception {
    endsInTimeThoughTheServerHangs(
        store -> store.get("key", SHORT), Wire.FETCH, "00 64 00 00 00 00 00 00 00 01 02 03");
  }

  private void endsInTimeThoughTheServerHangs(Consumer<TcpStore> call, int query) throws Exception {
    endsInTimeThoughTheServerHangs(call, query, "");
  }

  /** Lets the server answer that a key is absent, if asked, and send part of what follows. */
  private void endsInTimeThoughTheServerHangs(Consumer<TcpStore> call, int query, String lastWords)
      throws Exception {
    try (ScriptedServer server = new ScriptedServer();
        Opened opened = server.openTutti(manual(server, LONG))) {
      long start = time.nanoTime();
      Future<?> ends =
          server.client(
              () -> {
                call.accept(opened.store());
                return true;
              });
      switch (query) {
        case Wire.FETCH -> opened.main().expectRead("/key").sendNonce();
        case Wire.LOOK -> opened.main().expectLookAtAbsent("/key");
        default -> {}
      }
      try (Peer side = server.accept()) {
        assertThat(side.read(1)).containsExactly(query);
        side.send(lastWords);
        time.pass(Passing.ALL);
        assertThatThrownBy(() -> ended(ends)).hasCauseInstanceOf(StoreTimeoutException.class);
      }
      assertThat(Duration.ofNanos(time.nanoTime() - start)).isBetween(SHORT, MOST);
    }
  }

  @Test
  void aBarrierEndsThoughItsConnectionIsAcceptedByAStoppedServer() throws Exception {
    Process child = ServerChild.start("the token of this job");
    try {
      int port = Integer.parseInt(child.inputReader().readLine());
      JobToken token = JobToken.of("the token of this job");
      try (TcpStore store = new TcpStore(options(port).withToken(token))) {
        assertThat(store.add("number", 1)).isEqualTo(1);
        Process stop = new ProcessBuilder("kill", "-STOP", Long.toString(child.pid())).start();
        assertThat(stop.waitFor(4, TimeUnit.MINUTES)).isTrue();
        assertThat(stop.exitValue()).isZero();
        long start = System.nanoTime();
        assertThatThrownBy(() -> store.barrier("key", 2, SHORT))
            .isInstanceOf(StoreTimeoutException.class);
        assertThat(Duration.ofNanos(System.nanoTime() - start)).isBetween(SHORT, SOON);
      }
    } finally {
      child.destroyForcibly();
    }
  }

  @Test
  void aBarrierAtAServerOfPyTorchEndsSoonAfterItsDeadlineThoughTheServerHangs() throws Exception {
    try (ScriptedServer server = new ScriptedServer();
        Opened opened = server.open(manual(server, LONG))) {
      long start = time.nanoTime();
      Future<?> ends = server.client(() -> barrier(opened.store(), SHORT));
      opened.main().expectLookAtAbsent("tutti/barrier/key");
      time.pass(Passing.ALL);
      assertThatThrownBy(() -> ended(ends)).hasCauseInstanceOf(StoreTimeoutException.class);
      assertThat(Duration.ofNanos(time.nanoTime() - start)).isBetween(SHORT, MOST);
    }
  }

  @Test
  void aBarrierForgetsAMemberThatGaveUpWhileTheServerHung() throws Exception {
    try (ScriptedServer server = new ScriptedServer();
        Opened opened = server.open(manual(server, LONG))) {
      Peer main = opened.main();
      Future<?> first = server.client(() -> barrier(opened.store(), SHORT));
      main.expectLookAtAbsent("tutti/barrier/key");
      String state = main.expectSwap("tutti/barrier/key", "");
      assertThat(state).matches("0 2 \\S+ [0-9a-f]+");
      main.sendValue(state.getBytes(UTF_8));
      try (Peer side = server.accept()) {
        side.expect(request(Wire.WAIT, 1L, "tutti/barrier-round/0/key"));
        time.pass(Passing.ALL);
        assertThatThrownBy(() -> ended(first)).hasCauseInstanceOf(StoreTimeoutException.class);
        time.pass(Passing.NONE);
      }
      // The client tried to leave over this connection.
      server.accept().close();
      Future<?> second = server.client(() -> barrier(opened.store(), LONG));
      try (Peer next = server.acceptMain()) {
        next.expectLookAtPresent("tutti/barrier/key").sendValue(state.getBytes(UTF_8));
        String again = next.expectSwap("tutti/barrier/key", state);
        assertThat(again).matches("0 2 \\S+ [0-9a-f]+");
        assertThat(name(again)).isNotEqualTo(name(state));
        next.sendValue(again.getBytes(UTF_8));
        opened.store().close();
        assertThatThrownBy(() -> ended(second)).hasCauseInstanceOf(StoreClosedException.class);
      }
    }
  }

  private static boolean barrier(TcpStore store, Duration timeout) {
    store.barrier("key", 2, timeout);
    return true;
  }

  private static String name(String state) {
    return state.substring(state.lastIndexOf(' ') + 1);
  }

  @Test
  void aLargeSetEndsThoughTheServerDoesNotRead() throws Exception {
    try (ScriptedServer server = new ScriptedServer();
        Opened opened = server.open(manual(server, LONG))) {
      time.pass(Passing.ALL);
      assertThatThrownBy(() -> opened.store().set("key", new byte[8 << 20]))
          .isInstanceOf(StoreSilentException.class)
          .hasMessageEndingWith("did not answer in time; values set just before may be lost");
    }
  }

  /** Otherwise a rank would query the store once more before it reports which rank serves it. */
  @Test
  void aSilentServerIsSilentAlsoBehindASet() throws Exception {
    try (ScriptedServer server = new ScriptedServer();
        Opened opened = server.open(manual(server, LONG))) {
      opened.store().set("key", "value");
      time.pass(Passing.ALL);
      assertThatThrownBy(() -> opened.store().check(List.of("other")))
          .isInstanceOf(StoreSilentException.class)
          .hasMessageEndingWith("did not answer in time; values set just before may be lost");
    }
  }

  @Test
  void blockedCallsEndWhenTheServerDies() throws Exception {
    TcpStoreServer server = new TcpStoreServer(0);
    try (TcpStore store = new TcpStore(options(server.port()))) {
      List<Future<?>> blocked = new ArrayList<>();
      blocked.add(threads.submit(() -> store.get("key")));
      blocked.add(threads.submit(() -> store.await(List.of("key"))));
      blocked.add(threads.submit(() -> store.queuePop("key", LONG)));
      blocked.add(threads.submit(() -> store.barrier("key", 2, LONG)));
      awaitConnections(store, 1 + blocked.size());
      long start = System.nanoTime();
      server.close();
      for (Future<?> call : blocked) {
        assertThatThrownBy(() -> ended(call)).hasCauseInstanceOf(StoreConnectionException.class);
      }
      assertThat(Duration.ofNanos(System.nanoTime() - start)).isLessThan(LONG.dividedBy(2));
      assertThatThrownBy(() -> store.add("key", 1)).isInstanceOf(StoreConnectionException.class);
    }
  }

  @Test
  void keepsAFewConnectionsForLaterWaits() throws Exception {
    try (TcpStoreServer server = new TcpStoreServer(0);
        TcpStore store = new TcpStore(options(server.port()))) {
      List<Future<?>> waiting = new ArrayList<>();
      for (int i = 0; i < 20; i++) {
        waiting.add(threads.submit(() -> store.get("key")));
      }
      awaitConnections(store, 1 + waiting.size());
      store.set("key", "value");
      for (Future<?> call : waiting) {
        ended(call);
      }
      awaitConnections(store, 1 + ConnectionPool.MAX_IDLE);
    }
  }

  private static void awaitConnections(TcpStore store, int count) {
    long deadline = System.nanoTime() + LONG.toNanos();
    while (store.connections() != count) {
      if (System.nanoTime() > deadline) {
        throw new AssertionError(store.connections() + " connections, expected " + count);
      }
      Thread.onSpinWait();
    }
  }

  @Test
  void aRestartedServerIsNotTakenForTheOldOne() throws Exception {
    TcpStoreServer first = new TcpStoreServer(FreePorts.one());
    try (TcpStore store = new TcpStore(options(first.port()))) {
      assertThat(store.add("key", 1)).isEqualTo(1);
      first.close();
      try (TcpStoreServer second = new TcpStoreServer(first.port())) {
        assertThatThrownBy(() -> store.add("key", 1))
            .isInstanceOf(StoreConnectionException.class)
            .hasMessageContaining("closed the connection");
        assertThatThrownBy(() -> store.add("key", 1))
            .isInstanceOf(StoreConnectionException.class)
            .hasMessageContaining("the store server was restarted and has lost its keys");
        assertThat(second.port()).isEqualTo(first.port());
      }
    }
  }

  @Test
  void aDroppedConnectionToTheSameServerIsReplaced() throws Exception {
    try (TcpStoreServer server = new TcpStoreServer(0);
        TcpStore store = new TcpStore(options(server.port()))) {
      store.set("text", "no number");
      assertThatThrownBy(() -> store.add("text", 1)).hasMessageContaining("no number");
      assertThat(store.add("number", 1)).isEqualTo(1);
      assertThat(store.get("text")).asString(UTF_8).isEqualTo("no number");
    }
  }

  @Test
  void aConnectionThatEndedWhileNobodyUsedItIsReplaced() throws Exception {
    try (ScriptedServer server = new ScriptedServer();
        Opened opened = server.openTutti(options(server.port()))) {
      opened.store().idleAfter(Duration.ZERO);
      opened.main().closeAndWait();
      Future<Long> sum = server.client(() -> opened.store().add("key", 2));
      try (Peer main = server.acceptTuttiMain()) {
        main.expect(request(Wire.ADD, "/key", 2L)).send("03 00 00 00 00 00 00 00");
        assertThat(ended(sum)).isEqualTo(3);
      }
    }
  }

  @Test
  void setsThatMayBeLostWithAnIdleConnectionDoNotGoUnnoticed() throws Exception {
    try (ScriptedServer server = new ScriptedServer();
        Opened opened = server.openTutti(options(server.port()))) {
      opened.store().idleAfter(Duration.ZERO);
      opened.store().set("key", "value");
      opened.main().expect(request(Wire.SET, "/key", "value")).close();
      assertThatThrownBy(() -> opened.store().deleteKey("key"))
          .isInstanceOf(StoreConnectionException.class)
          .hasMessageEndingWith("; values set just before may be lost");
    }
  }

  @Test
  void bothSidesShowAfterAMinuteOfSilenceThatAConnectionIsUsed() throws Exception {
    try (TcpStoreServer server = new TcpStoreServer(InetAddress.getLoopbackAddress(), 0);
        TcpStore store = new TcpStore(options(server.port()))) {
      assertThat(store.add("key", 1)).isEqualTo(1);
      // A connection that waits for an acknowledgment has another timer until it arrives.
      List<Long> atServer = keepAliveSeconds(LOCAL, server.port());
      while (atServer.isEmpty()) {
        Thread.onSpinWait();
        atServer = keepAliveSeconds(LOCAL, server.port());
      }
      List<Long> atClient = keepAliveSeconds(REMOTE, server.port());
      while (atClient.isEmpty()) {
        Thread.onSpinWait();
        atClient = keepAliveSeconds(REMOTE, server.port());
      }
      assertThat(atServer).allMatch(left -> left <= 60);
      assertThat(atClient).allMatch(left -> left <= 60);
    }
  }

  /** Returns when the next keep-alive is due on connections with a port on one side. */
  private static List<Long> keepAliveSeconds(int side, int port) throws IOException {
    String suffix = ":%04X".formatted(port);
    List<Long> seconds = new ArrayList<>();
    for (String table : List.of("/proc/net/tcp", "/proc/net/tcp6")) {
      if (!Files.exists(Path.of(table))) {
        continue;
      }
      for (String line : Files.readAllLines(Path.of(table))) {
        // sl local remote state queues timer:when, in hundredths of a second
        String[] fields = line.strip().split("\\s+");
        if (fields[side].endsWith(suffix)
            && fields[3].equals("01")
            && fields[5].startsWith("02:")) {
          seconds.add(Long.parseLong(fields[5].substring(3), 16) / 100);
        }
      }
    }
    return seconds;
  }

  @Test
  void saysThatThePortToServeIsInUse() {
    try (TcpStoreServer server = new TcpStoreServer(0)) {
      assertThatThrownBy(() -> new TcpStore(options(server.port()).withServer(true)))
          .isInstanceOf(StoreConnectionException.class)
          .hasMessageContaining("port " + server.port())
          .hasMessageContaining("in use");
    }
  }

  @Test
  void theServingProcessWaitsForAllWorkers() throws Exception {
    int port = FreePorts.one();
    List<Callable<TcpStore>> ranks = new ArrayList<>();
    ranks.add(() -> new TcpStore(options(port).withServer(true).withWorldSize(3)));
    ranks.add(() -> new TcpStore(options(port).withWorldSize(3)));
    ranks.add(() -> new TcpStore(options(port).withWorldSize(3)));
    List<TcpStore> stores = new ArrayList<>();
    for (Future<TcpStore> rank : threads.invokeAll(ranks)) {
      stores.add(ended(rank));
    }
    stores.get(1).set("key", "value");
    assertThat(stores.get(0).get("key")).asString(UTF_8).isEqualTo("value");
    assertThat(stores.get(2).keyCount()).isEqualTo(1);
    assertThat(stores.get(2).listKeys()).containsExactly("key");
    stores.reversed().forEach(TcpStore::close);
  }

  @Test
  void tellsHowManyWorkersAreMissing() throws Exception {
    int port = FreePorts.one();
    TcpStoreOptions serving = options(port).withServer(true).withWorldSize(3).withTime(time);
    Future<TcpStore> opening = threads.submit(() -> new TcpStore(serving));
    try (TcpStore _ = new TcpStore(options(port).withWorldSize(3));
        RawClient watching = RawClient.greeted(port)) {
      byte[] joined;
      do {
        joined =
            watching.send(request(Wire.ADD, "init/", 0L)).socket.getInputStream().readNBytes(8);
      } while (joined[0] < 2);
      time.skip(LONG);
      assertThatThrownBy(() -> ended(opening))
          .hasCauseInstanceOf(StoreTimeoutException.class)
          .hasMessageContaining("2/3 clients joined")
          .hasMessageContaining("port " + port);
    }
    // The port is free again.
    try (TcpStoreServer server = new TcpStoreServer(port)) {
      assertThat(server.port()).isEqualTo(port);
    }
  }

  @Test
  void optionsAreChecked() {
    assertThatThrownBy(() -> TcpStoreOptions.of("", 1)).hasMessageContaining("host");
    assertThatThrownBy(() -> TcpStoreOptions.of("h", 70000)).hasMessageContaining("70000");
    assertThatThrownBy(() -> TcpStoreOptions.of("h", -1)).hasMessageContaining("-1");
    assertThatThrownBy(() -> TcpStoreOptions.of("h", 1).withWorldSize(-2))
        .hasMessageContaining("-2");
  }

  @Test
  void sixtyFourClientsCountTogether() throws Exception {
    int clients = 64;
    long each = 40;
    try (TcpStoreServer server = new TcpStoreServer(0);
        TcpStore first = new TcpStore(options(server.port()))) {
      List<Callable<Integer>> all = new ArrayList<>();
      for (int i = 0; i < clients; i++) {
        int rank = i;
        all.add(
            () -> {
              try (TcpStore store = new TcpStore(options(server.port()))) {
                for (int k = 0; k < each; k++) {
                  store.add("count", 1);
                  store.set("rank" + rank, "value" + k);
                }
                store.barrier("all", clients, LONG);
                int next = (rank + 1) % clients;
                assertThat(store.get("rank" + next, LONG))
                    .asString(UTF_8)
                    .isEqualTo("value" + (each - 1));
                return rank;
              }
            });
      }
      for (Future<Integer> rank : threads.invokeAll(all)) {
        ended(rank);
      }
      assertThat(first.add("count", 0)).isEqualTo(clients * each);
    }
  }
}
