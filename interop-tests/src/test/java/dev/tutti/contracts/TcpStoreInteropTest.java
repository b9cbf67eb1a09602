package dev.tutti.contracts;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.tutti.Store;
import dev.tutti.StoreException;
import dev.tutti.StoreTimeoutException;
import dev.tutti.StoreTokenException;
import dev.tutti.peer.libtorch.PeerArguments;
import dev.tutti.store.JobToken;
import dev.tutti.store.tcp.TcpStore;
import dev.tutti.store.tcp.TcpStoreOptions;
import dev.tutti.store.tcp.TcpStoreServer;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.parallel.Execution;
import org.junit.jupiter.api.parallel.ExecutionMode;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** Runs Tutti's and libtorch's clients on one server, each on the other's and on their own. */
@Execution(ExecutionMode.CONCURRENT)
@Timeout(value = 15, unit = TimeUnit.MINUTES)
class TcpStoreInteropTest {
  private static final Duration LONG = Duration.ofSeconds(60);

  @BeforeAll
  @Timeout(value = 20, unit = TimeUnit.MINUTES)
  static void loadsLibtorch() {
    LibtorchStore.prepare();
  }

  /** The kind of server. */
  enum Server {
    TUTTI,
    LIBUV,
    LEGACY
  }

  /** A server with a client of each kind. */
  private static final class SharedServer implements AutoCloseable {
    private final Runnable closeServer;
    final Calls calls = new Calls();
    final Store ours;
    final LibtorchStore theirs;

    SharedServer(Server kind) {
      int port;
      if (kind == Server.TUTTI) {
        TcpStoreServer own = new TcpStoreServer(0);
        closeServer = own::close;
        port = own.port();
      } else {
        LibtorchStore other = LibtorchStore.server(kind == Server.LEGACY);
        closeServer = other::close;
        port = other.port();
      }
      ours = new TcpStore(TcpStoreOptions.of("127.0.0.1", port).withTimeout(LONG));
      theirs = new LibtorchStore(PeerArguments.tcp(1, 2, port));
    }

    @Override
    public void close() {
      theirs.close();
      ours.close();
      calls.close();
      closeServer.run();
    }
  }

  private static byte[] bytes(String text) {
    return text.getBytes(UTF_8);
  }

  @ParameterizedTest
  @EnumSource
  void valuesAndCountersAreShared(Server kind) throws Exception {
    try (SharedServer shared = new SharedServer(kind)) {
      Store ours = shared.ours;
      LibtorchStore theirs = shared.theirs;

      ours.set("a", "from-tutti");
      assertThat(theirs.run("store_get a")).isEqualTo("from-tutti");
      theirs.run("store_set b from-libtorch");
      assertThat(ours.get("b")).asString(UTF_8).isEqualTo("from-libtorch");
      theirs.run("store_set empty -");
      assertThat(ours.get("empty")).isEmpty();
      ours.set("nothing", new byte[0]);
      assertThat(theirs.run("store_get nothing")).isEqualTo("-");

      assertThat(ours.add("n", 40)).isEqualTo(40);
      assertThat(theirs.run("store_add n 2")).isEqualTo("42");
      assertThat(ours.get("n")).asString(UTF_8).isEqualTo("42");

      assertThat(ours.compareSet("a", bytes("from-tutti"), bytes("swapped")).stored()).isTrue();
      assertThat(theirs.run("store_compare_set a swapped again")).isEqualTo("again");
      assertThat(theirs.run("store_compare_set a wrong other")).isEqualTo("again");
      assertThat(theirs.run("store_compare_set absent wrong other")).isEqualTo("wrong");
      assertThat(ours.compareSet("absent", bytes("wrong"), bytes("x")).value()).isNull();
      assertThat(ours.compareSet("a", bytes("wrong"), bytes("x")).value())
          .asString(UTF_8)
          .isEqualTo("again");
      assertThat(ours.compareSet("fresh", null, bytes("new")).stored()).isTrue();
      assertThat(theirs.run("store_get fresh")).isEqualTo("new");

      // No reply confirms an append, but the same client's next request is served after it.
      theirs.run("store_append log one,");
      assertThat(theirs.run("store_get log")).isEqualTo("one,");
      ours.append("log", bytes("two"));
      assertThat(ours.get("log")).asString(UTF_8).isEqualTo("one,two");
      assertThat(theirs.run("store_get log")).isEqualTo("one,two");

      assertThat(theirs.run("store_check a b n")).isEqualTo("true");
      assertThat(theirs.run("store_check a gone")).isEqualTo("false");
      assertThat(ours.check(List.of("a", "gone"))).isFalse();
      assertThat(theirs.run("store_delete b")).isEqualTo("true");
      assertThat(ours.deleteKey("b")).isFalse();
      assertThat(ours.deleteKey("n")).isTrue();
      assertThat(theirs.run("store_delete n")).isEqualTo("false");

      ours.multiSet(List.of("m1", "m2"), List.of(bytes("1"), bytes("22")));
      assertThat(theirs.run("store_get m2")).isEqualTo("22");
      assertThat(ours.multiGet(List.of("m2", "a", "empty"), LONG))
          .satisfiesExactly(
              m -> assertThat(m).asString(UTF_8).isEqualTo("22"),
              a -> assertThat(a).asString(UTF_8).isEqualTo("again"),
              empty -> assertThat(empty).isEmpty());

      List<String> keys = List.of("a", "empty", "fresh", "log", "m1", "m2", "nothing");
      assertThat(ours.listKeys()).containsExactlyElementsOf(keys);
      assertThat(theirs.run("store_list_keys")).isEqualTo(String.join(",", keys));
      assertThat(ours.keyCount()).isEqualTo(7);
      assertThat(theirs.run("store_num_keys")).isEqualTo("7");
    }
  }

  @ParameterizedTest
  @EnumSource
  void eachWakesTheOther(Server kind) throws Exception {
    try (SharedServer shared = new SharedServer(kind)) {
      Store ours = shared.ours;
      LibtorchStore theirs = shared.theirs;

      Future<byte[]> get = shared.calls.start(() -> ours.get("x", LONG));
      Future<?> wait = shared.calls.run(() -> ours.await(List.of("x", "y"), LONG));
      Calls.assertBlocked(get);
      theirs.run("store_set x 1");
      assertThat(Calls.ended(get)).asString(UTF_8).isEqualTo("1");
      Calls.assertBlocked(wait);
      theirs.run("store_add y 1");
      Calls.ended(wait);
      // The poll-loop server wakes no waiter for this operation.
      Future<byte[]> swapped = shared.calls.start(() -> ours.get("z", LONG));
      Calls.assertBlocked(swapped);
      theirs.run("store_compare_set z - swapped");
      assertThat(Calls.ended(swapped)).asString(UTF_8).isEqualTo("swapped");

      theirs.send("store_wait p q");
      ours.set("p", "1");
      ours.append("q", bytes("1"));
      assertThat(theirs.reply()).isEmpty();
      theirs.send("store_get r");
      ours.set("r", "here");
      assertThat(theirs.reply()).isEqualTo("here");

      assertThat(theirs.error("store_wait never timeout=200")).contains("wait timeout after 200ms");
      assertThat(theirs.run("store_get r")).isEqualTo("here");
      assertThatThrownBy(() -> ours.await(List.of("never"), Duration.ofMillis(200)))
          .isInstanceOf(StoreTimeoutException.class);
      assertThat(ours.add("count", 1)).isEqualTo(1);
    }
  }

  @ParameterizedTest
  @EnumSource(mode = EnumSource.Mode.EXCLUDE, names = "LEGACY")
  void queuesAreShared(Server kind) throws Exception {
    try (SharedServer shared = new SharedServer(kind)) {
      Store ours = shared.ours;
      LibtorchStore theirs = shared.theirs;

      ours.queuePush("q", bytes("one"));
      ours.queuePush("q", bytes("two"));
      assertThat(ours.queueLength("q")).isEqualTo(2);
      assertThat(theirs.run("store_queue_len q")).isEqualTo("2");
      assertThat(theirs.run("store_queue_pop q")).isEqualTo("one");
      assertThat(theirs.run("store_check q")).isEqualTo("true");
      assertThat(ours.queuePop("q", Duration.ZERO)).asString(UTF_8).isEqualTo("two");
      assertThat(theirs.error("store_queue_pop q block=false")).contains("queue is empty");

      Future<byte[]> pop = shared.calls.start(() -> ours.queuePop("q", LONG));
      Calls.assertBlocked(pop);
      theirs.run("store_queue_push q three");
      assertThat(Calls.ended(pop)).asString(UTF_8).isEqualTo("three");

      theirs.send("store_queue_pop q");
      ours.queuePush("q", bytes("four"));
      assertThat(theirs.reply()).isEqualTo("four");
      assertThat(ours.queueLength("q")).isZero();
    }
  }

  @Test
  void aServerWithoutQueuesIsNamedAsSuch() throws Exception {
    try (SharedServer shared = new SharedServer(Server.LEGACY)) {
      assertThatThrownBy(() -> shared.ours.queuePush("q", bytes("one")))
          .isInstanceOf(StoreException.class)
          .hasMessageContaining("has no queues");
      assertThat(shared.ours.add("alive", 1)).isEqualTo(1);
      assertThat(shared.theirs.run("store_add alive 1")).isEqualTo("2");
    }
  }

  @ParameterizedTest
  @EnumSource
  void ourBarrierNeedsNothingOfTheServer(Server kind) throws Exception {
    try (SharedServer shared = new SharedServer(kind);
        Store second = shared.ours.duplicate()) {
      for (int round = 0; round < 5; round++) {
        Future<?> other = shared.calls.run(() -> second.barrier("b", 2, LONG));
        shared.ours.barrier("b", 2, LONG);
        Calls.ended(other);
      }
      assertThatThrownBy(() -> shared.ours.barrier("b", 2, Duration.ofMillis(100)))
          .isInstanceOf(StoreTimeoutException.class)
          .hasMessageContaining("1 of 2 members arrived");
      Future<?> other = shared.calls.run(() -> second.barrier("b", 2, LONG));
      shared.ours.barrier("b", 2, LONG);
      Calls.ended(other);
      assertThat(shared.ours.listKeys()).isEmpty();
    }
  }

  @ParameterizedTest
  @EnumSource(mode = EnumSource.Mode.EXCLUDE, names = "TUTTI")
  void libtorchsServerCountsOurProcess(Server kind) throws Exception {
    PeerArguments arguments = PeerArguments.tcpServer(0, 2).with("--workers", "2");
    try (LibtorchStore server =
        new LibtorchStore(kind == Server.LEGACY ? arguments.with("--legacy") : arguments)) {
      TcpStoreOptions options =
          TcpStoreOptions.of("127.0.0.1", server.port()).withWorldSize(2).withTimeout(LONG);
      try (Store ours = new TcpStore(options)) {
        assertThat(server.run("store_num_keys")).isEqualTo("1");
        assertThat(ours.keyCount()).isZero();
      }
    }
  }

  @ParameterizedTest
  @EnumSource(names = {"LIBUV", "LEGACY"})
  void aClientWithATokenSaysThatLibtorchsServerHasNone(Server kind) {
    try (LibtorchStore theirs = LibtorchStore.server(kind == Server.LEGACY)) {
      TcpStoreOptions options =
          TcpStoreOptions.of("127.0.0.1", theirs.port())
              .withTimeout(LONG)
              .withToken(JobToken.of("unknown to libtorch"));
      assertThatThrownBy(() -> new TcpStore(options))
          .isInstanceOf(StoreTokenException.class)
          .hasMessageContaining("is a PyTorch store server")
          .hasMessageContaining("TUTTI_TOKEN must be the same");
      theirs.awaitOpen();
      assertThat(theirs.run("store_add n 2")).isEqualTo("2");
    }
  }

  /** The key of a barrier may look like that of a round of another one. */
  @ParameterizedTest
  @EnumSource(names = {"LIBUV", "LEGACY"})
  void barriersWithSimilarNamesAreApart(Server kind) {
    try (LibtorchStore theirs = LibtorchStore.server(kind == Server.LEGACY);
        Store ours =
            new TcpStore(TcpStoreOptions.of("127.0.0.1", theirs.port()).withTimeout(LONG))) {
      ours.barrier("b", 1, LONG);
      ours.barrier("b/0", 1, LONG);
      assertThatThrownBy(() -> ours.barrier("b/1", 2, Duration.ZERO))
          .isInstanceOf(StoreTimeoutException.class);
      ours.barrier("b", 1, LONG);
    }
  }

  @Test
  void ourServerCountsLibtorchsProcess() throws Exception {
    try (TcpStoreServer server = new TcpStoreServer(0);
        LibtorchStore theirs =
            new LibtorchStore(PeerArguments.tcp(1, 2, server.port()).with("--workers", "1"))) {
      server.awaitWorkers(1, LONG);
      theirs.awaitOpen();
      assertThatThrownBy(() -> server.awaitWorkers(2, Duration.ofMillis(100)))
          .isInstanceOf(StoreTimeoutException.class)
          .hasMessageContaining("1/2 clients joined");
    }
  }

  @ParameterizedTest
  @EnumSource
  void looksAtAbsentKeysWakeNobody(Server kind) throws Exception {
    try (SharedServer shared = new SharedServer(kind)) {
      Store ours = shared.ours;
      Future<String> waiting = shared.calls.start(() -> shared.theirs.run("store_get late"));
      Duration shortly = Duration.ofMillis(20);
      for (int i = 0; i < 10; i++) {
        assertThatThrownBy(() -> ours.get("late", shortly))
            .isInstanceOf(StoreTimeoutException.class);
        assertThatThrownBy(() -> ours.multiGet(List.of("late", "never"), shortly))
            .isInstanceOf(StoreTimeoutException.class);
        assertThat(ours.compareSet("late", bytes("wrong"), bytes("x")).stored()).isFalse();
        assertThat(ours.check(List.of("late"))).isFalse();
      }
      assertThat(waiting.isDone()).isFalse();
      ours.set("late", "value");
      assertThat(waiting.get(LONG.toSeconds(), TimeUnit.SECONDS)).isEqualTo("value");
    }
  }
}
