package dev.tutti.store.tcp;

import static dev.tutti.store.tcp.RawClient.request;
import static dev.tutti.store.tcp.ScriptedServer.ended;
import static java.nio.charset.StandardCharsets.ISO_8859_1;
import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import com.sun.management.ThreadMXBean;
import dev.tutti.StoreClosedException;
import dev.tutti.StoreConnectionException;
import dev.tutti.StoreException;
import dev.tutti.StoreSilentException;
import dev.tutti.StoreTimeoutException;
import dev.tutti.store.JobToken;
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
import org.junit.jupiter.api.Assumptions;
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

  /** A time-out that passes, but not before the client has opened its connection. */
  private static final Duration PASSING = Duration.ofSeconds(5);

  /** The longest time that a call with one of these time-outs may take. */
  private static final Duration SOON = Duration.ofSeconds(30);

  /** The fields of a line of /proc/net/tcp with the addresses of a connection. */
  private static final int LOCAL = 1;

  private static final int REMOTE = 2;

  private final ExecutorService threads = Executors.newCachedThreadPool();

  @AfterEach
  void endThreads() {
    threads.shutdownNow();
  }

  private static TcpStoreOptions options(int port) {
    return TcpStoreOptions.of("127.0.0.1", port).withTimeout(LONG);
  }

  @Test
  void triesAgainUntilThereIsAServer() throws Exception {
    int port = FreePort.find();
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
    int port = FreePort.find();
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
    // A client that stands still for that long may not know yet that its connection was accepted.
    InTime.repeat(
        SHORT,
        () -> {
          try (ScriptedServer server = new ScriptedServer()) {
            assertThatThrownBy(() -> new TcpStore(options(server.port()).withTimeout(SHORT)))
                .isInstanceOf(StoreConnectionException.class)
                .hasMessageContaining(
                    "the server there accepted the connection but did not answer in time, as a Gloo"
                        + " rank or another server that is not a store would");
          }
        });
  }

  @Test
  void tellsWhatItFoundThoughTheLastAttemptRunsOutOfTime() throws Exception {
    // A busy machine may hold the client up until one attempt is all that it can make, or until the
    // last one has lasted longer than an attempt that is cut short.
    boolean inTime = false;
    for (int run = 0; run < 20 && !inTime; run++) {
      inTime = findsTheLastAttemptOutOfTime();
    }
    Assumptions.assumeTrue(inTime, "the machine is too busy for a time-out of 900 ms");
  }

  /** Returns whether the client could make its two attempts in time. */
  private static boolean findsTheLastAttemptOutOfTime() throws Exception {
    try (ScriptedServer server = new ScriptedServer()) {
      TcpStoreOptions options = options(server.port()).withTimeout(Duration.ofMillis(900));
      Future<byte[]> script =
          server.client(
              () -> {
                server.accept().close();
                return server.accept().read(1);
              });
      long start = System.nanoTime();
      StoreConnectionException failure =
          catchThrowableOfType(StoreConnectionException.class, () -> new TcpStore(options));
      boolean inTime = System.nanoTime() - start < TimeUnit.SECONDS.toNanos(1);
      if (inTime && failure.getMessage().contains(", 2 attempts: ")) {
        assertThat(failure)
            .hasMessageContaining("the server there closed the connection, as a Gloo rank");
        assertThat(ended(script)).isEqualTo(RawClient.hex("02"));
        return true;
      }
      return false;
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
    InTime.repeat(PASSING, TcpStoreFailureTest::callsAServerThatHangs);
  }

  private static void callsAServerThatHangs() throws Exception {
    try (ScriptedServer server = new ScriptedServer();
        Opened opened = server.open(options(server.port()).withTimeout(PASSING))) {
      long start = System.nanoTime();
      assertThatThrownBy(() -> opened.store().add("key", 1))
          .isInstanceOf(StoreTimeoutException.class)
          .hasMessageContaining("127.0.0.1:" + server.port());
      assertThat(Duration.ofNanos(System.nanoTime() - start)).isBetween(PASSING, SOON);
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
    InTime.repeat(PASSING, TcpStoreFailureTest::callsAServerThatIsSilentForTwoCalls);
  }

  private static void callsAServerThatIsSilentForTwoCalls() throws Exception {
    try (ScriptedServer server = new ScriptedServer();
        Opened opened = server.open(options(server.port()).withTimeout(PASSING))) {
      assertThatThrownBy(() -> opened.store().add("key", 1))
          .isInstanceOf(StoreTimeoutException.class);
      // The server's kernel still accepts connections.
      assertThatThrownBy(() -> opened.store().add("key", 1))
          .isInstanceOf(StoreTimeoutException.class);
      server.accept().close();
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

  private static void endsInTimeThoughTheServerHangs(Consumer<TcpStore> call, int query)
      throws Exception {
    endsInTimeThoughTheServerHangs(call, query, "");
  }

  /** Lets the server answer that a key is absent, if asked, and send part of what follows. */
  private static void endsInTimeThoughTheServerHangs(
      Consumer<TcpStore> call, int query, String lastWords) throws Exception {
    InTime.repeat(InTime.GRACE, () -> callsWhileTheServerHangs(call, query, lastWords));
  }

  private static void callsWhileTheServerHangs(Consumer<TcpStore> call, int query, String lastWords)
      throws Exception {
    try (ScriptedServer server = new ScriptedServer();
        Opened opened = server.openTutti(options(server.port()))) {
      long start = System.nanoTime();
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
        assertThatThrownBy(() -> ended(ends)).hasCauseInstanceOf(StoreTimeoutException.class);
      }
      assertThat(Duration.ofNanos(System.nanoTime() - start)).isBetween(SHORT, SOON);
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
        Opened opened = server.open(options(server.port()))) {
      long start = System.nanoTime();
      Future<?> ends =
          server.client(
              () -> {
                opened.store().barrier("key", 2, SHORT);
                return true;
              });
      opened.main().expectLookAtAbsent("tutti/barrier/key");
      assertThatThrownBy(() -> ended(ends)).hasCauseInstanceOf(StoreTimeoutException.class);
      assertThat(Duration.ofNanos(System.nanoTime() - start)).isBetween(SHORT, SOON);
    }
  }

  @Test
  void aBarrierForgetsAMemberThatGaveUpWhileTheServerHung() throws Exception {
    InTime.repeat(InTime.GRACE, TcpStoreFailureTest::givesUpABarrierWhileTheServerHangs);
  }

  private static void givesUpABarrierWhileTheServerHangs() throws Exception {
    try (ScriptedServer server = new ScriptedServer();
        Opened opened = server.open(options(server.port()))) {
      Peer main = opened.main();
      Future<?> first = server.client(() -> barrier(opened.store(), SHORT));
      main.expectLookAtAbsent("tutti/barrier/key");
      String state = main.expectSwap("tutti/barrier/key", "");
      assertThat(state).matches("0 2 \\S+ [0-9a-f]+");
      main.sendValue(state.getBytes(UTF_8));
      try (Peer side = server.accept()) {
        side.expect(request(Wire.WAIT, 1L, "tutti/barrier-round/0/key"));
        assertThatThrownBy(() -> ended(first)).hasCauseInstanceOf(StoreTimeoutException.class);
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
    InTime.repeat(
        PASSING,
        () -> {
          try (ScriptedServer server = new ScriptedServer();
              Opened opened = server.open(options(server.port()).withTimeout(PASSING))) {
            assertThatThrownBy(() -> opened.store().set("key", new byte[8 << 20]))
                .isInstanceOf(StoreSilentException.class)
                .hasMessageEndingWith("did not answer in time; values set just before may be lost");
          }
        });
  }

  /** Otherwise a rank would query the store once more before it reports which rank serves it. */
  @Test
  void aSilentServerIsSilentAlsoBehindASet() throws Exception {
    InTime.repeat(
        PASSING,
        () -> {
          try (ScriptedServer server = new ScriptedServer();
              Opened opened = server.open(options(server.port()).withTimeout(PASSING))) {
            opened.store().set("key", "value");
            assertThatThrownBy(() -> opened.store().check(List.of("other")))
                .isInstanceOf(StoreSilentException.class)
                .hasMessageEndingWith("did not answer in time; values set just before may be lost");
          }
        });
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
    TcpStoreServer first = new TcpStoreServer(FreePort.find());
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
    int port = FreePort.find();
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
    // The other client may come too late.
    InTime.repeat(PASSING, this::missesAWorker);
  }

  private void missesAWorker() throws Exception {
    int port = FreePort.find();
    Future<TcpStore> joining = threads.submit(() -> new TcpStore(options(port).withWorldSize(3)));
    assertThatThrownBy(
            () ->
                new TcpStore(options(port).withServer(true).withWorldSize(3).withTimeout(PASSING)))
        .isInstanceOf(StoreTimeoutException.class)
        .hasMessageContaining("2/3 clients joined")
        .hasMessageContaining("port " + port);
    ended(joining).close();
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
