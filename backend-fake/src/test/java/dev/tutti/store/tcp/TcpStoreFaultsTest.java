package dev.tutti.store.tcp;

import static dev.tutti.store.tcp.RawClient.request;
import static dev.tutti.store.tcp.ScriptedServer.ended;
import static dev.tutti.store.tcp.StoreWorld.LONG;
import static dev.tutti.store.tcp.StoreWorld.PORT;
import static dev.tutti.store.tcp.StoreWorld.options;
import static dev.tutti.store.tcp.StoreWorld.scripted;
import static dev.tutti.store.tcp.StoreWorld.server;
import static dev.tutti.store.tcp.StoreWorld.start;
import static java.nio.charset.StandardCharsets.ISO_8859_1;
import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.tutti.StoreClosedException;
import dev.tutti.StoreConnectionException;
import dev.tutti.StoreException;
import dev.tutti.StoreSilentException;
import dev.tutti.StoreTimeoutException;
import dev.tutti.fake.simulation.Simulated;
import dev.tutti.fake.simulation.SimulatedHost;
import dev.tutti.fake.simulation.SimulatedWorld;
import dev.tutti.fake.simulation.Simulation;
import dev.tutti.store.JobToken;
import dev.tutti.store.tcp.ScriptedServer.Opened;
import dev.tutti.store.tcp.ScriptedServer.Peer;
import java.net.InetSocketAddress;
import java.nio.channels.ServerSocketChannel;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.function.Consumer;
import org.junit.jupiter.api.parallel.Isolated;

/** Tests the client, and the opening of stores, when things go wrong. */
@Isolated("threads of other tests in shared locks would bring in real time")
class TcpStoreFaultsTest {
  private static final Duration SHORT = Duration.ofMillis(300);

  /** A call may first give the server a second to answer, then to take it out of a barrier. */
  private static final Duration MOST = SHORT.plusSeconds(3);

  @Simulated
  void triesAgainUntilThereIsAServer() throws Exception {
    Future<TcpStore> client = start(() -> new TcpStore(options(PORT)));
    // The client connects to this server first, and is turned away.
    try (ServerSocketChannel early =
        SimulatedHost.current()
            .channels()
            .openServerSocketChannel()
            .bind(new InetSocketAddress(PORT))) {
      early.accept().close();
      early.accept().close();
    }
    try (TcpStoreServer server = server(PORT);
        TcpStore store = ended(client)) {
      store.set("key", "value");
      assertThat(store.get("key")).asString(UTF_8).isEqualTo("value");
      assertThat(server.port()).isEqualTo(PORT);
    }
  }

  @Simulated
  void givesUpAtTheDeadlineAndTellsWhatItTried() {
    Duration start = Simulation.now();
    assertThatThrownBy(() -> new TcpStore(options(PORT).withTimeout(SHORT)))
        .isInstanceOf(StoreConnectionException.class)
        .hasMessageContaining("no store server at 127.0.0.1:" + PORT)
        .hasMessageContaining("within 300 ms")
        .hasMessageMatching("(?s).*, (1 attempt|[2-9] attempts|\\d{2,} attempts): .*");
    assertThatThrownBy(() -> new TcpStore(options(PORT).withTimeout(Duration.ofNanos(1))))
        .hasMessageContaining(", 1 attempt: ");
    assertThat(Simulation.now().minus(start)).isBetween(SHORT, SHORT.plusMillis(1));
  }

  @Simulated
  void givesUpOnAServerThatNeverAnswers() throws Exception {
    try (ScriptedServer server = scripted()) {
      Future<TcpStore> client =
          server.client(() -> new TcpStore(options(server.port()).withTimeout(SHORT)));
      try (Peer _ = server.accept()) {
        assertThatThrownBy(() -> ended(client))
            .hasCauseInstanceOf(StoreConnectionException.class)
            .hasMessageContaining("within 300 ms, 1 attempt: ")
            .hasMessageContaining(
                "the server there accepted the connection but did not answer in time, as a Gloo"
                    + " rank or another server that is not a store would");
      }
    }
  }

  @Simulated
  void tellsWhatItFoundThoughTheLastAttemptRunsOutOfTime() throws Exception {
    try (ScriptedServer server = scripted()) {
      Future<TcpStore> client =
          server.client(() -> new TcpStore(options(server.port()).withTimeout(SHORT)));
      server.accept().close();
      try (Peer second = server.accept()) {
        assertThat(second.read(1)).isEqualTo(RawClient.hex("02"));
        assertThatThrownBy(() -> ended(client))
            .hasCauseInstanceOf(StoreConnectionException.class)
            .hasMessageContaining(", 2 attempts: ")
            .hasMessageContaining("the server there closed the connection, as a Gloo rank");
      }
    }
  }

  @Simulated
  void saysAtOnceThatAnHttpServerAnswers() throws Exception {
    assertRefused("HTTP/1.1 400 Bad Request", "an HTTP server answers there; check MASTER_PORT");
  }

  @Simulated
  void saysAtOnceThatAnSshServerAnswers() throws Exception {
    assertRefused(
        "SSH-2.0-OpenSSH",
        "begins with 'SSH-2.0-', which is not a store server's; check MASTER_PORT");
  }

  @Simulated
  void saysAtOnceThatAnAeronStoreServerAnswers() throws Exception {
    assertRefused(
        "TuttiAer",
        "an Aeron store server answers there; set TUTTI_STORE to aeron on this rank too");
  }

  @Simulated
  void saysAtOnceWhichBytesAnswer() throws Exception {
    assertRefused(
        "\0\1\2\3\4\5\6\200", "begins with 00 01 02 03 04 05 06 80, which is not a store server's");
  }

  private static void assertRefused(String answer, String expected) throws Exception {
    try (ScriptedServer server = scripted()) {
      Future<TcpStore> client = server.client(() -> new TcpStore(options(server.port())));
      try (Peer peer = server.accept()) {
        peer.send(answer.getBytes(ISO_8859_1));
        assertThatThrownBy(() -> ended(client))
            .cause()
            .isExactlyInstanceOf(StoreException.class)
            .hasMessageStartingWith("no store server at 127.0.0.1:" + server.port() + ": ")
            .hasMessageContaining(expected);
      }
    }
  }

  @Simulated
  void aCallEndsThoughTheServerHangs() throws Exception {
    try (ScriptedServer server = scripted();
        Opened opened = server.open(options(server.port()))) {
      Future<Long> call = server.client(() -> opened.store().add("key", 1));
      opened.main().expect(request(Wire.ADD, "/key", 1L));
      SimulatedWorld.sleep(LONG.minusSeconds(1));
      assertThat(call).isNotDone();
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

  @Simulated
  void aServerThatWasSilentForTwoCallsIsUsedAgain() throws Exception {
    try (ScriptedServer server = scripted();
        Opened opened = server.open(options(server.port()))) {
      Future<Long> first = server.client(() -> opened.store().add("key", 1));
      opened.main().expect(request(Wire.ADD, "/key", 1L));
      assertThatThrownBy(() -> ended(first)).hasCauseInstanceOf(StoreTimeoutException.class);
      Future<Long> second = server.client(() -> opened.store().add("key", 1));
      try (Peer _ = server.accept()) {
        assertThatThrownBy(() -> ended(second)).hasCauseInstanceOf(StoreTimeoutException.class);
      }
      Future<Long> next = server.client(() -> opened.store().add("key", 2));
      try (Peer main = server.acceptMain()) {
        main.expect(request(Wire.ADD, "/key", 2L)).send("03 00 00 00 00 00 00 00");
        assertThat(ended(next)).isEqualTo(3);
      }
    }
  }

  @Simulated
  void aBarrierEndsSoonAfterItsDeadlineThoughTheServerHangs() throws Exception {
    endsInTimeThoughTheServerHangs(store -> store.barrier("key", 2, SHORT), Wire.BARRIER);
  }

  @Simulated
  void aGetEndsSoonAfterItsDeadlineThoughTheServerHangs() throws Exception {
    endsInTimeThoughTheServerHangs(store -> store.get("key", SHORT), Wire.FETCH);
  }

  @Simulated
  void aWaitEndsSoonAfterItsDeadlineThoughTheServerHangs() throws Exception {
    endsInTimeThoughTheServerHangs(store -> store.await(List.of("key"), SHORT), Wire.LOOK);
  }

  @Simulated
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
    try (ScriptedServer server = scripted();
        Opened opened = server.openTutti(options(server.port()))) {
      Duration start = Simulation.now();
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
      assertThat(Simulation.now().minus(start)).isBetween(SHORT, MOST);
    }
  }

  @Simulated
  void aBarrierAtAServerOfPyTorchEndsSoonAfterItsDeadlineThoughTheServerHangs() throws Exception {
    try (ScriptedServer server = scripted();
        Opened opened = server.open(options(server.port()))) {
      Duration start = Simulation.now();
      Future<?> ends = server.client(() -> barrier(opened.store(), SHORT));
      opened.main().expectLookAtAbsent("tutti/barrier/key");
      assertThatThrownBy(() -> ended(ends)).hasCauseInstanceOf(StoreTimeoutException.class);
      assertThat(Simulation.now().minus(start)).isBetween(SHORT, MOST);
    }
  }

  @Simulated
  void aBarrierForgetsAMemberThatGaveUpWhileTheServerHung() throws Exception {
    try (ScriptedServer server = scripted();
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

  @Simulated
  void aLargeSetEndsThoughTheServerDoesNotRead() throws Exception {
    try (ScriptedServer server = scripted();
        Opened opened = server.open(options(server.port()))) {
      assertThatThrownBy(() -> opened.store().set("key", new byte[8 << 20]))
          .isInstanceOf(StoreSilentException.class)
          .hasMessageEndingWith("did not answer in time; values set just before may be lost");
    }
  }

  /** Otherwise a rank would query the store once more before it reports which rank serves it. */
  @Simulated
  void aSilentServerIsSilentAlsoBehindASet() throws Exception {
    try (ScriptedServer server = scripted();
        Opened opened = server.open(options(server.port()))) {
      opened.store().set("key", "value");
      assertThatThrownBy(() -> opened.store().check(List.of("other")))
          .isInstanceOf(StoreSilentException.class)
          .hasMessageEndingWith("did not answer in time; values set just before may be lost");
    }
  }

  @Simulated
  void blockedCallsEndWhenTheServerDies() throws Exception {
    TcpStoreServer server = server(0);
    try (TcpStore store = new TcpStore(options(server.port()))) {
      List<Future<?>> blocked = new ArrayList<>();
      blocked.add(start(() -> store.get("key")));
      blocked.add(start(Executors.callable(() -> store.await(List.of("key")))));
      blocked.add(start(() -> store.queuePop("key", LONG)));
      blocked.add(start(() -> barrier(store, LONG)));
      awaitConnections(store, 1 + blocked.size());
      Duration start = Simulation.now();
      server.close();
      for (Future<?> call : blocked) {
        assertThatThrownBy(() -> ended(call)).hasCauseInstanceOf(StoreConnectionException.class);
      }
      assertThat(Simulation.now().minus(start)).isLessThan(SHORT);
      assertThatThrownBy(() -> store.add("key", 1)).isInstanceOf(StoreConnectionException.class);
    }
  }

  @Simulated
  void keepsAFewConnectionsForLaterWaits() throws Exception {
    try (TcpStoreServer server = server(0);
        TcpStore store = new TcpStore(options(server.port()))) {
      List<Future<?>> waiting = new ArrayList<>();
      for (int i = 0; i < 20; i++) {
        waiting.add(start(() -> store.get("key")));
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
    Simulation.until(() -> store.connections() == count);
  }

  @Simulated
  void aRestartedServerIsNotTakenForTheOldOne() throws Exception {
    TcpStoreServer first = server(PORT);
    try (TcpStore store = new TcpStore(options(first.port()))) {
      assertThat(store.add("key", 1)).isEqualTo(1);
      first.close();
      try (TcpStoreServer second = server(first.port())) {
        assertThatThrownBy(() -> store.add("key", 1))
            .isInstanceOf(StoreConnectionException.class)
            .hasMessageMatching(".*(closed the connection|Connection reset)");
        assertThatThrownBy(() -> store.add("key", 1))
            .isInstanceOf(StoreConnectionException.class)
            .hasMessageContaining("the store server was restarted and has lost its keys");
        assertThat(second.port()).isEqualTo(first.port());
      }
    }
  }

  @Simulated
  void aDroppedConnectionToTheSameServerIsReplaced() throws Exception {
    try (TcpStoreServer server = server(0);
        TcpStore store = new TcpStore(options(server.port()))) {
      store.set("text", "no number");
      assertThatThrownBy(() -> store.add("text", 1)).hasMessageContaining("no number");
      assertThat(store.add("number", 1)).isEqualTo(1);
      assertThat(store.get("text")).asString(UTF_8).isEqualTo("no number");
    }
  }

  @Simulated
  void aConnectionThatEndedWhileNobodyUsedItIsReplaced() throws Exception {
    try (ScriptedServer server = scripted();
        Opened opened = server.openTutti(options(server.port()))) {
      opened.store().idleAfter(Duration.ZERO);
      opened.main().close();
      SimulatedWorld.sleep(SHORT);
      Future<Long> sum = server.client(() -> opened.store().add("key", 2));
      try (Peer main = server.acceptTuttiMain()) {
        main.expect(request(Wire.ADD, "/key", 2L)).send("03 00 00 00 00 00 00 00");
        assertThat(ended(sum)).isEqualTo(3);
      }
    }
  }

  @Simulated
  void setsThatMayBeLostWithAnIdleConnectionDoNotGoUnnoticed() throws Exception {
    try (ScriptedServer server = scripted();
        Opened opened = server.openTutti(options(server.port()))) {
      opened.store().idleAfter(Duration.ZERO);
      opened.store().set("key", "value");
      opened.main().expect(request(Wire.SET, "/key", "value")).close();
      assertThatThrownBy(() -> opened.store().deleteKey("key"))
          .isInstanceOf(StoreConnectionException.class)
          .hasMessageEndingWith("; values set just before may be lost");
    }
  }

  @Simulated
  void saysThatThePortToServeIsInUse() {
    try (TcpStoreServer server = server(0)) {
      assertThatThrownBy(() -> new TcpStore(options(server.port()).withServer(true)))
          .isInstanceOf(StoreConnectionException.class)
          .hasMessageContaining("port " + server.port())
          .hasMessageContaining("in use");
    }
  }

  @Simulated
  void tellsHowManyWorkersAreMissing() throws Exception {
    TcpStoreOptions serving = options(PORT).withServer(true).withWorldSize(3);
    Future<TcpStore> opening = start(() -> new TcpStore(serving));
    try (TcpStore _ = new TcpStore(options(PORT).withWorldSize(3))) {
      assertThatThrownBy(() -> ended(opening))
          .hasCauseInstanceOf(StoreTimeoutException.class)
          .hasMessageContaining("2/3 clients joined")
          .hasMessageContaining("port " + PORT);
    }
    // The port is free again.
    try (TcpStoreServer server = server(PORT)) {
      assertThat(server.port()).isEqualTo(PORT);
    }
  }

  /** The system gives a client that port of its host now and then to which it connects. */
  @Simulated(seeds = 30)
  void aClientThatReachesItselfLeavesThePortToTheServer() throws Exception {
    SimulatedHost.current().usePorts(PORT, 2);
    Future<TcpStore> client = start(() -> new TcpStore(options(PORT)));
    SimulatedWorld.sleep(SHORT);
    try (TcpStoreServer _ = server(PORT);
        TcpStore store = ended(client)) {
      assertThat(store.add("number", 1)).isEqualTo(1);
    }
  }

  /** Whoever was served when memory ended is dropped, and connects again. */
  @Simulated(seeds = 30)
  void aServerWithoutMemoryGoesOnServing() {
    SimulatedHost here = SimulatedHost.current();
    SimulatedHost there = here.newHost("server");
    try (TcpStoreServer server =
            new TcpStoreServer(null, PORT, JobToken.NONE, null, there.time(), there.channels());
        TcpStore store = new TcpStore(remote(there))) {
      assertThat(store.add("number", 1)).isEqualTo(1);
      for (int calls = 1; calls <= 3; calls++) {
        there.exhaustMemory(calls);
        assertThatThrownBy(() -> store.add("other", 1)).isInstanceOf(StoreException.class);
        there.exhaustMemory(0);
        assertThat(store.add("number", 1)).isEqualTo(1 + calls);
      }
      assertThat(server.isRunning()).isTrue();
    }
  }

  private static TcpStoreOptions remote(SimulatedHost server) {
    SimulatedHost here = SimulatedHost.current();
    return TcpStoreOptions.of(server.address().getHostAddress(), PORT)
        .withTimeout(LONG)
        .withTime(here.time())
        .withChannels(here.channels());
  }

  /** A server whose process stands still accepts connections. */
  @Simulated
  void callsEndThoughTheServerStandsStillAndGoOnAfterwards() {
    SimulatedHost here = SimulatedHost.current();
    SimulatedHost there = here.newHost("server");
    Duration pause = Duration.ofSeconds(90);
    try (TcpStoreServer _ =
            new TcpStoreServer(null, PORT, JobToken.NONE, null, there.time(), there.channels());
        TcpStore store = new TcpStore(remote(there))) {
      assertThat(store.add("number", 1)).isEqualTo(1);
      there.pause(pause);
      Duration start = Simulation.now();
      assertThatThrownBy(() -> store.barrier("key", 2, SHORT))
          .isInstanceOf(StoreTimeoutException.class);
      assertThat(Simulation.now().minus(start)).isBetween(SHORT, MOST);
      SimulatedWorld.sleep(pause);
      assertThat(store.add("number", 1)).isEqualTo(2);
    }
  }
}
