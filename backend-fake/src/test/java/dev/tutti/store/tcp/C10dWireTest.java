package dev.tutti.store.tcp;

import static dev.tutti.store.tcp.RawClient.request;
import static dev.tutti.store.tcp.ScriptedServer.ended;
import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.tutti.Store;
import dev.tutti.StoreConnectionException;
import dev.tutti.StoreException;
import dev.tutti.StoreTimeoutException;
import dev.tutti.fake.simulation.Simulated;
import dev.tutti.fake.simulation.SimulatedHost;
import dev.tutti.fake.simulation.SimulatedWorld;
import dev.tutti.store.tcp.ScriptedServer.Opened;
import dev.tutti.store.tcp.ScriptedServer.Peer;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import org.junit.jupiter.api.parallel.Isolated;

/** Tests byte by byte what the client sends to a PyTorch server. */
@Isolated("threads of other tests in shared locks would bring in real time")
class C10dWireTest implements Simulated.Fixture {
  private static final Duration SHORT = Duration.ofMillis(50);
  private static final Duration GRACE = Duration.ofNanos(TcpClient.GRACE_NANOS);
  private static final Duration LONG = Duration.ofSeconds(60);

  private ScriptedServer server;
  private Opened opened;
  private TcpStore store;
  private Peer main;

  @Override
  public void open() throws Exception {
    SimulatedHost host = SimulatedHost.current();
    server = new ScriptedServer(host.channels(), host.time());
    opened = server.open(options());
    store = opened.store();
    main = opened.main();
  }

  private TcpStoreOptions options() throws Exception {
    SimulatedHost host = SimulatedHost.current();
    return TcpStoreOptions.of("127.0.0.1", server.port())
        .withTimeout(LONG)
        .withTime(host.time())
        .withChannels(host.channels());
  }

  @Override
  public void close() throws Exception {
    opened.close();
    server.close();
  }

  @Simulated
  void setIsOneRequestWithoutReply() throws Exception {
    store.set("k", "val");
    main.expect("01 02 00 00 00 00 00 00 00 2f 6b 03 00 00 00 00 00 00 00 76 61 6c");
  }

  @Simulated
  void addIsOneRoundTrip() throws Exception {
    Future<Long> sum = server.client(() -> store.add("n", 5));
    main.expect("04 02 00 00 00 00 00 00 00 2f 6e 05 00 00 00 00 00 00 00");
    main.send("07 00 00 00 00 00 00 00");
    assertThat(ended(sum)).isEqualTo(7);
  }

  @Simulated
  void getAsksWhetherTheKeyExistsBeforeItReads() throws Exception {
    Future<byte[]> value = server.client(() -> store.get("k"));
    main.expectLookAtPresent("/k").sendValue("val".getBytes(UTF_8));
    assertThat(ended(value)).asString(UTF_8).isEqualTo("val");
  }

  @Simulated
  void getOfAnAbsentKeyWaitsOnAnotherConnection() throws Exception {
    Future<byte[]> value = server.client(() -> store.get("k", LONG));
    main.expectLookAtAbsent("/k");
    Peer side = server.accept();
    side.expect(request(Wire.WAIT, 1L, "/k"));
    Future<?> set = server.client(() -> setTo("other", "1"));
    main.expect(request(Wire.SET, "/other", "1"));
    ended(set);
    side.send("00");
    main.expectLookAtPresent("/k").sendValue(new byte[] {4});
    assertThat(ended(value)).containsExactly(4);

    // The side connection is reused, and greets only once.
    Future<byte[]> again = server.client(() -> store.get("l", LONG));
    main.expectLookAtAbsent("/l");
    side.expect(request(Wire.WAIT, 1L, "/l")).send("00");
    main.expectLookAtPresent("/l").sendValue(new byte[0]);
    assertThat(ended(again)).isEmpty();
  }

  @Simulated
  void getLooksAgainWhileItWaits() throws Exception {
    try (Opened looking = server.open(options())) {
      Future<byte[]> value = server.client(() -> looking.store().get("k", LONG));
      looking.main().expectLookAtAbsent("/k");
      Peer side = server.accept();
      side.expect(request(Wire.WAIT, 1L, "/k"));
      looking.main().expectLookAtAbsent("/k").expectLookAtPresent("/k").sendValue(new byte[] {5});
      side.expect("0c").send("01");
      assertThat(ended(value)).containsExactly(5);
    }
  }

  /** A wait that the client is about to cancel. */
  private record LateWait(Future<?> call, Peer side) {}

  /** Waits for "k" until the timeout has passed and the key is still missing. */
  private LateWait waitInVain() throws Exception {
    Future<?> wait = server.client(() -> waitFor("k", SHORT));
    main.expect(request(Wire.CHECK, 1L, "/k")).send("01");
    Peer side = server.accept();
    side.expect(request(Wire.WAIT, 1L, "/k"));
    main.expect(request(Wire.CHECK, 1L, "/k")).send("01");
    return new LateWait(wait, side);
  }

  @Simulated
  void aTimedOutWaitIsCancelled() throws Exception {
    LateWait late = waitInVain();
    late.side.expect("0c").send("01");
    main.expect(request(Wire.CHECK, 1L, "/k")).send("01");
    assertTimeout(late.call, "1 of 1 keys missing: 'k'");
  }

  @Simulated
  void aReplyThatCrossesItsCancelIsReadToo() throws Exception {
    LateWait late = waitInVain();
    late.side.expect("0c").send("00 01");
    main.expect(request(Wire.CHECK, 1L, "/k")).send("00");
    ended(late.call);

    Future<?> next = server.client(() -> waitFor("l", LONG));
    main.expect(request(Wire.CHECK, 1L, "/l")).send("01");
    late.side.expect(request(Wire.WAIT, 1L, "/l")).send("00");
    ended(next);
  }

  @Simulated
  void aServerThatDoesNotAnswerACancelLosesTheConnection() throws Exception {
    LateWait late = waitInVain();
    late.side.expect("0c");
    late.side.expectEnd();
    main.expect(request(Wire.CHECK, 1L, "/k")).send("01");
    assertTimeout(late.call, "1 of 1 keys missing: 'k'");
  }

  @Simulated
  void compareSetReadsAndSwapsInOneWrite() throws Exception {
    Future<Store.Swap> swap =
        server.client(() -> store.compareSet("k", bytes("old"), bytes("new")));
    main.expectLookAtPresent("/k").expect(request(Wire.COMPARE_SET, "/k", "old", "new"));
    main.sendValue(bytes("old")).sendValue(bytes("new"));
    assertThat(ended(swap)).matches(Store.Swap::stored);
  }

  @Simulated
  void compareSetTouchesNoAbsentKeyIfItExpectsAValue() throws Exception {
    Future<Store.Swap> swap =
        server.client(() -> store.compareSet("k", bytes("old"), bytes("old")));
    main.expectLookAtAbsent("/k");
    assertThat(ended(swap)).isEqualTo(new Store.Swap(false, null));
  }

  @Simulated
  void compareSetDoesNotTouchAnEmptyValueWhenItExpectsNone() throws Exception {
    Future<Store.Swap> swap = server.client(() -> store.compareSet("k", null, bytes("new")));
    main.expectLookAtPresent("/k").sendValue(new byte[0]);
    assertThat(ended(swap).stored()).isFalse();
    Future<Long> next = server.client(() -> store.add("n", 1));
    main.expect(request(Wire.ADD, "/n", 1L)).send("01 00 00 00 00 00 00 00");
    assertThat(ended(next)).isEqualTo(1);
  }

  @Simulated
  void theKeyCountLeavesOutTheCountOfProcesses() throws Exception {
    Future<Long> count = server.client(store::keyCount);
    main.expect("07").expect(request(Wire.CHECK, 1L, "init/"));
    main.send("05 00 00 00 00 00 00 00 00");
    assertThat(ended(count)).isEqualTo(4);
  }

  @Simulated
  void appendAndMultiSetAreTheirRequests() throws Exception {
    Future<?> append = server.client(() -> appendTo("k"));
    main.expect(request(Wire.APPEND, "/k", "!")).expect(request(Wire.CHECK, 0L)).send("00");
    ended(append);
    store.multiSet(List.of("a", "b"), List.of(bytes("1"), bytes("2")));
    main.expect(request(Wire.MULTI_SET, 2L, "/a", "1", "/b", "2"));
  }

  @Simulated
  void queuesAreTriedOutOnAConnectionOfTheirOwn() throws Exception {
    Future<Long> length = server.client(() -> store.queueLength("q"));
    try (Peer probe = server.accept()) {
      probe.expect(request(Wire.CHECK, 0L)).send("00");
      probe.expect(request(Wire.QUEUE_LENGTH, "tutti/probe")).send("00 00 00 00 00 00 00 00");
      probe.expectEnd();
    }
    main.expect(request(Wire.QUEUE_LENGTH, "/q")).send("03 00 00 00 00 00 00 00");
    assertThat(ended(length)).isEqualTo(3);
    // Once is enough.
    store.queuePush("q", bytes("v"));
    main.expect(request(Wire.QUEUE_PUSH, "/q", "v"));
  }

  /** Notifies a client that this server has queues. */
  private void answerProbe() throws Exception {
    try (Peer probe = server.accept()) {
      probe.expect(request(Wire.CHECK, 0L)).send("00");
      probe.expect(request(Wire.QUEUE_LENGTH, "tutti/probe")).send("00 00 00 00 00 00 00 00");
    }
  }

  @Simulated
  void aPopWaitsForAValueThatIsOnItsWay() throws Exception {
    Future<byte[]> pop = server.client(() -> store.queuePop("q", SHORT));
    answerProbe();
    main.expect(request(Wire.CHECK, 1L, "/q")).send("00");
    main.expect(request(Wire.QUEUE_POP, "/q"));
    SimulatedWorld.sleep(GRACE.plus(SHORT));
    assertThat(pop).isNotDone();
    main.send("01 00 00 00 00 00 00 00").sendValue(bytes("v"));
    assertThat(ended(pop)).isEqualTo(bytes("v"));
  }

  @Simulated
  void aPopAsksWhetherTheServerAnswersBeforeItTakes() throws Exception {
    Future<byte[]> pop = server.client(() -> store.queuePop("q", SHORT));
    answerProbe();
    main.expect(request(Wire.CHECK, 1L, "/q"));
    assertThatThrownBy(() -> ended(pop)).hasCauseInstanceOf(StoreTimeoutException.class);
    main.expectEnd();
  }

  @Simulated
  void aServerWithoutQueuesIsNeverAskedForThem() throws Exception {
    Future<?> push = server.client(() -> pushTo("q"));
    try (Peer probe = server.accept()) {
      probe.expect(request(Wire.CHECK, 0L)).send("00");
      probe.expect(request(Wire.QUEUE_LENGTH, "tutti/probe"));
    }
    main.expect(request(Wire.CHECK, 0L)).send("00");
    assertThatThrownBy(() -> ended(push))
        .hasCauseInstanceOf(StoreException.class)
        .hasMessageContaining("has no queues");
    assertThatThrownBy(() -> store.queuePop("q", LONG)).hasMessageContaining("has no queues");
  }

  @Simulated
  void aServerWithoutAListIsNeverAskedForIt() throws Exception {
    Future<?> list = server.client(store::listKeys);
    try (Peer probe = server.accept()) {
      probe.expect(request(Wire.CHECK, 0L)).send("00");
      probe.expect(request(Wire.LIST_KEYS));
    }
    main.expect(request(Wire.CHECK, 0L)).send("00");
    assertThatThrownBy(() -> ended(list))
        .hasCauseInstanceOf(StoreException.class)
        .hasMessageContaining("cannot list its keys");
  }

  @Simulated
  void aBarrierNeedsNoQueryOfItsOwn() throws Exception {
    store.set("before", "1");
    main.expect(request(Wire.SET, "/before", "1"));
    Future<?> barrier = server.client(() -> barrier("b", 1));
    main.expectLookAtAbsent("tutti/barrier/b");
    main.expect("02 0f 00 00 00 00 00 00 00").expect(bytes("tutti/barrier/b"));
    main.expect("00 00 00 00 00 00 00 00 14 00 00 00 00 00 00 00");
    byte[] state = main.read(20);
    assertThat(state).asString(UTF_8).startsWith("1 1 ");
    main.sendValue(state);
    main.expect(request(Wire.SET, "tutti/barrier-round/0/b", "1"));
    main.expect(request(Wire.DELETE_KEY, "tutti/barrier-round/-1/b"))
        .send("00 00 00 00 00 00 00 00");
    ended(barrier);
  }

  @Simulated
  void aKeyThatTheServerWouldDropTheClientForIsRefused() throws Exception {
    String key = "k".repeat(Store.MAX_KEY_BYTES);
    assertThatThrownBy(() -> store.set(key, "value"))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("8192 bytes; a PyTorch store server accepts one less");
    Future<?> set = server.client(() -> setTo(key.substring(1), "value"));
    main.expect(request(Wire.SET, "/" + key.substring(1), "value"));
    ended(set);
  }

  @Simulated
  void aLostConnectionStaysLost() throws Exception {
    store.set("k", "1");
    main.expect(request(Wire.SET, "/k", "1"));
    main.close();
    assertThatThrownBy(() -> store.check(List.of("k")))
        .isInstanceOf(StoreConnectionException.class)
        .hasMessageContaining("values set just before may be lost");
    assertThatThrownBy(() -> store.get("k"))
        .isInstanceOf(StoreConnectionException.class)
        .hasMessageContaining("the connection was lost earlier");
  }

  @Simulated
  void anAddThatTheServerRefusesIsExplained() throws Exception {
    Future<Long> sum = server.client(() -> store.add("k", 5));
    main.expect(request(Wire.ADD, "/k", 5L));
    main.close();
    try (Peer next = server.acceptMain()) {
      next.expectLookAtPresent("/k").sendValue(bytes("text"));
      assertThatThrownBy(() -> ended(sum))
          .hasCauseInstanceOf(StoreException.class)
          .hasMessageContaining("key 'k' holds 4 bytes \"text\", which is not a decimal number");
      store.set("k", "1");
      next.expect(request(Wire.SET, "/k", "1"));
    }
  }

  private static byte[] bytes(String text) {
    return text.getBytes(UTF_8);
  }

  private boolean setTo(String key, String value) {
    store.set(key, value);
    return true;
  }

  private boolean waitFor(String key, Duration timeout) {
    store.await(List.of(key), timeout);
    return true;
  }

  private boolean appendTo(String key) {
    store.append(key, bytes("!"));
    return true;
  }

  private boolean pushTo(String key) {
    store.queuePush(key, bytes("v"));
    return true;
  }

  private boolean barrier(String key, int size) {
    store.barrier(key, size, LONG);
    return true;
  }

  private static void assertTimeout(Future<?> call, String message) {
    assertThatThrownBy(() -> ended(call))
        .isInstanceOf(ExecutionException.class)
        .hasCauseInstanceOf(StoreTimeoutException.class)
        .hasMessageContaining(message);
  }
}
