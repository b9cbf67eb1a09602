package dev.tutti.aeron;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.tutti.StoreClosedException;
import dev.tutti.StoreConnectionException;
import dev.tutti.StoreException;
import dev.tutti.StoreTokenException;
import dev.tutti.aeron.AeronStoreOptions.Transport;
import dev.tutti.aeron.driver.Doorbell;
import dev.tutti.aeron.driver.DriverDirectory;
import dev.tutti.aeron.driver.EmbeddedDriver;
import dev.tutti.aeron.session.SessionOpener;
import dev.tutti.aeron.wire.Control;
import dev.tutti.aeron.wire.Handshake;
import dev.tutti.aeron.wire.Timing;
import dev.tutti.store.JobToken;
import dev.tutti.store.tcp.TcpStore;
import dev.tutti.store.tcp.TcpStoreOptions;
import dev.tutti.store.tcp.TcpStoreServer;
import io.aeron.Aeron;
import io.aeron.driver.MediaDriver;
import io.aeron.driver.ThreadingMode;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.Random;
import java.util.concurrent.Callable;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.logging.Handler;
import java.util.logging.LogRecord;
import java.util.logging.Logger;
import java.util.logging.StreamHandler;
import java.util.stream.Stream;
import org.junit.jupiter.api.Order;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Tests failures between a client and its server, and what they leave behind. */
@Order(1)
class AeronStoreServerTest {
  private static final Duration LONG = Duration.ofSeconds(60);

  /** A time-out that passes, but not before the client has connected. */
  private static final Duration PASSING = Duration.ofSeconds(8);

  @TempDir private Path directory;

  private AeronStoreOptions options(int port) {
    return AeronStoreOptions.of("127.0.0.1", port)
        .withDirectory(directory)
        .withTimeout(LONG)
        .withToken(JobToken.NONE);
  }

  private List<String> left() throws IOException {
    try (Stream<Path> files = Files.list(directory)) {
      return files.map(path -> path.getFileName().toString()).toList();
    }
  }

  private static <T> FutureTask<T> start(Callable<T> body) {
    FutureTask<T> task = new FutureTask<>(body);
    Thread.ofVirtual().start(task);
    return task;
  }

  private static void assertFails(FutureTask<?> call, Class<?> type, String message) {
    assertThatThrownBy(() -> call.get(240, TimeUnit.SECONDS))
        .isInstanceOf(ExecutionException.class)
        .cause()
        .isInstanceOf(type)
        .hasMessageContaining(message);
  }

  @ParameterizedTest
  @EnumSource(
      mode = EnumSource.Mode.EXCLUDE,
      names = {"AUTO"})
  void everyCallFailsAtOnceWhenTheServerCloses(Transport transport) throws Exception {
    AeronStoreServer server = new AeronStoreServer(options(0));
    try (AeronStore store = new AeronStore(options(server.port()).withTransport(transport))) {
      FutureTask<?> waiting = start(() -> store.get("never"));
      FutureTask<?> popping = start(() -> store.queuePop("never", LONG));
      store.set("key", "value");
      server.close();
      assertFails(waiting, StoreConnectionException.class, "is gone: it was closed");
      assertFails(popping, StoreConnectionException.class, "is gone: it was closed");
      assertThatThrownBy(() -> store.set("key", "value"))
          .isInstanceOf(StoreConnectionException.class)
          .hasMessageContaining("its keys are lost");
    } finally {
      server.close();
    }
    assertThat(left()).isEmpty();
  }

  @ParameterizedTest
  @ValueSource(strings = {"ipc", "udp"})
  void aKilledServerIsNoticedAtOnceAndLeavesNothing(String transport) throws Exception {
    try (StoreChild server = StoreChild.start("serve", 0, "TUTTI_AERON_DIR=" + directory)) {
      String ready = server.line();
      assertThat(ready).startsWith("READY ");
      int port = Integer.parseInt(ready.substring(6));
      try (AeronStore store =
          new AeronStore(
              options(port).withTransport(Transport.valueOf(transport.toUpperCase(Locale.ROOT))))) {
        store.set("key", "value");
        assertThat(store.get("key")).asString(StandardCharsets.UTF_8).isEqualTo("value");
        FutureTask<?> waiting = start(() -> store.get("never"));
        server.kill();
        assertFails(waiting, StoreConnectionException.class, "is gone: its process ended");
      }
    }
    // A client that uses the server's folder deletes it; otherwise the next server does.
    new AeronStoreServer(options(0)).close();
    long deadline = System.nanoTime() + LONG.toNanos();
    while (!left().isEmpty()) {
      // The client's thread, which the server has left to it, may not be done yet.
      assertThat(System.nanoTime()).as("left: %s", left()).isLessThan(deadline);
      LockSupport.parkNanos(1_000_000);
    }
  }

  @Test
  void aClientWithoutABellLeavesNoStreams() throws Exception {
    long deadline = System.nanoTime() + LONG.toNanos();
    try (AeronStoreServer server = new AeronStoreServer(options(0));
        Control client =
            Control.connect(
                new InetSocketAddress(InetAddress.getLoopbackAddress(), server.port()),
                Timing.of(Duration.ofSeconds(5)),
                deadline)) {
      Handshake.Session session = Handshake.ask(client, JobToken.NONE, deadline);
      client.putByte(Handshake.IPC);
      client.putInt(999_999);
      client.send();
      assertThat(client.readByte(deadline)).isEqualTo(Handshake.FAILED);
      assertThat(client.readText(deadline)).contains("unknown bell 999999");
      try (Stream<Path> streams = Files.walk(Path.of(session.driver(), "publications"))) {
        assertThat(streams.filter(Files::isRegularFile)).isEmpty();
      }
    }
  }

  @Test
  void aKilledClientIsForgotten() throws Exception {
    try (AeronStoreServer server = new AeronStoreServer(options(0));
        AeronStore store = new AeronStore(options(server.port()))) {
      try (StoreChild client =
          StoreChild.start("barrier", server.port(), "TUTTI_AERON_DIR=" + directory)) {
        assertThat(client.line()).isEqualTo("READY true");
        store.await(List.of("here"), LONG);
        awaitMembers(store, 2);
        client.kill();
        awaitMembers(store, 1);
      }
    }
    assertThat(left()).isEmpty();
  }

  /**
   * Polls a barrier of two until it has the expected number of members, this call included, or is
   * complete.
   */
  private static void awaitMembers(AeronStore store, int expected) {
    long deadline = System.nanoTime() + LONG.toNanos();
    while (true) {
      try {
        store.barrier("barrier", 3, Duration.ZERO);
        throw new AssertionError("a barrier of three is complete");
      } catch (StoreException e) {
        // If the other client is waiting, the sizes differ.
        boolean other = e.getMessage().contains("has 2 members");
        if (other == (expected == 2)) {
          return;
        }
        assertThat(System.nanoTime()).isLessThan(deadline);
      }
    }
  }

  @Test
  void aStoppedClientStallsNobodyAndGoesOn() throws Exception {
    try (AeronStoreServer server = new AeronStoreServer(options(0));
        AeronStore store = new AeronStore(options(server.port()));
        StoreChild client =
            StoreChild.start("wait", server.port(), "TUTTI_AERON_DIR=" + directory)) {
      assertThat(client.line()).isEqualTo("READY true");
      client.signal("STOP");
      byte[] value = new byte[1 << 20];
      // A client that stands still for longer loses its session.
      long until = System.nanoTime() + Duration.ofSeconds(3).toNanos();
      for (int i = 0; i < 20 && System.nanoTime() - until < 0; i++) {
        store.set("key" + i, value);
        assertThat(store.get("key" + i)).hasSize(value.length);
      }
      store.set("go", "1");
      client.signal("CONT");
      assertThat(client.line()).isEqualTo("DONE");
    }
  }

  @Test
  void portInUseIsNamed() {
    try (AeronStoreServer server = new AeronStoreServer(options(0))) {
      assertThatThrownBy(() -> new AeronStoreServer(options(server.port())))
          .isInstanceOf(StoreConnectionException.class)
          .hasMessageContaining("port " + server.port() + " for a store server is in use");
    }
  }

  @Test
  void twoJobsOfOneHostDoNotMeet() throws Exception {
    try (AeronStore first = new AeronStore(options(0).withServer(true));
        AeronStore second = new AeronStore(options(0).withServer(true))) {
      first.set("key", "1");
      assertThat(second.check(List.of("key"))).isFalse();
      assertThat(first.driver()).isNotEqualTo(second.driver());
      assertThat(left()).hasSize(2);
    }
    assertThat(left()).isEmpty();
  }

  @Test
  void whoHasNotTheSameTokenIsRefused() {
    JobToken token = JobToken.of("0123456789abcdef");
    try (AeronStoreServer server = new AeronStoreServer(options(0).withToken(token));
        AeronStore store = new AeronStore(options(server.port()).withToken(token))) {
      store.set("key", "value");
      assertThatThrownBy(() -> new AeronStore(options(server.port())))
          .isInstanceOf(StoreTokenException.class)
          .hasMessageContaining("requires a token, but this process has none");
      JobToken other = JobToken.of("0123456789abcdeF");
      assertThatThrownBy(() -> new AeronStore(options(server.port()).withToken(other)))
          .isInstanceOf(StoreTokenException.class)
          .hasMessageContaining("its token differs from this process's");
      assertThat(store.check(List.of("key"))).isTrue();
    }
    try (AeronStoreServer server = new AeronStoreServer(options(0))) {
      assertThatThrownBy(() -> new AeronStore(options(server.port()).withToken(token)))
          .isInstanceOf(StoreTokenException.class)
          .hasMessageContaining("it has no token, but this process has one");
    }
  }

  @Test
  void randomBytesAtThePortDisturbNobody() throws Exception {
    Random random = new Random(20_261_122);
    try (AeronStoreServer server = new AeronStoreServer(options(0));
        AeronStore store = new AeronStore(options(server.port()))) {
      for (int i = 0; i < 20; i++) {
        byte[] noise = new byte[1 + random.nextInt(2000)];
        random.nextBytes(noise);
        if (i % 2 == 0) {
          // Reaches the protocol version, or the token.
          byte[] magic = "TuttiAer".getBytes(StandardCharsets.US_ASCII);
          System.arraycopy(magic, 0, noise, 0, Math.min(noise.length, magic.length));
        }
        try (Socket socket = new Socket(InetAddress.getLoopbackAddress(), server.port())) {
          socket.setSoTimeout((int) LONG.toMillis());
          socket.getOutputStream().write(noise);
          socket.shutdownOutput();
          socket.getInputStream().readAllBytes();
        } catch (IOException e) {
          assertThat(e).hasMessageContaining("reset");
        }
      }
      store.set("key", "value");
      assertThat(store.get("key")).asString(StandardCharsets.UTF_8).isEqualTo("value");
    }
  }

  @Test
  void anotherServerAtThePortIsNamed() throws Exception {
    try (var server = new dev.tutti.store.tcp.TcpStoreServer(InetAddress.getLoopbackAddress(), 0)) {
      assertThatThrownBy(
              () -> new AeronStore(options(server.port()).withTimeout(Duration.ofSeconds(1))))
          .isInstanceOf(StoreConnectionException.class)
          .hasMessageContaining("127.0.0.1:" + server.port());
    }
  }

  /** Returns a socket that holds a port, at which nobody listens. */
  private static Socket holdPort() throws IOException {
    Socket socket = new Socket();
    socket.bind(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0));
    return socket;
  }

  @Test
  void noServerIsNamedAtTheDeadline() throws IOException {
    try (Socket held = holdPort()) {
      int port = held.getLocalPort();
      assertThatThrownBy(() -> new AeronStore(options(port).withTimeout(Duration.ofMillis(300))))
          .isInstanceOf(StoreConnectionException.class)
          .hasMessageContaining("no store server at 127.0.0.1:" + port + " within 300 ms");
    }
    assertThat(directory).isEmptyDirectory();
  }

  @Test
  void aServerThatEndsWhileAClientConnectsIsTriedAgain() throws Exception {
    Timing timing = Timing.of(Duration.ofSeconds(5));
    EmbeddedDriver driver = EmbeddedDriver.start(options(0).directory(), "", timing, 2);
    try (Aeron aeron = EmbeddedDriver.connect(driver.path(), timing)) {
      int port;
      FutureTask<AeronStore> opening;
      try (var listener = new java.net.ServerSocket(0)) {
        port = listener.getLocalPort();
        AeronStoreOptions options = options(port);
        opening = start(() -> new AeronStore(options));
        Control control = new Control(listener.accept(), timing);
        long deadline = System.nanoTime() + LONG.toNanos();
        tellSession(control, driver, driver.path(), Doorbell.make(aeron).number(), deadline);
        assertThat(control.readByte(deadline)).isEqualTo(Handshake.IPC);
        assertThat(control.readInt(deadline)).isNotNegative();
        control.putByte(Handshake.OK);
        control.send();
        control.close();
      }
      long start = System.nanoTime();
      try (AeronStoreServer server = new AeronStoreServer(options(port));
          AeronStore store = opening.get(60, TimeUnit.SECONDS)) {
        store.set("key", "value");
        assertThat(server.port()).isEqualTo(port);
      }
      assertThat(System.nanoTime() - start).isLessThan(TimeUnit.SECONDS.toNanos(30));
    } finally {
      driver.close();
    }
    assertThat(left()).isEmpty();
  }

  @Test
  void aStoreOverTcpIsToldWhatItFound() throws Exception {
    try (AeronStoreServer server = new AeronStoreServer(options(0))) {
      TcpStoreOptions options = TcpStoreOptions.of("127.0.0.1", server.port()).withTimeout(LONG);
      assertThatThrownBy(() -> new TcpStore(options))
          .isInstanceOf(StoreException.class)
          .hasMessage(
              "no store server at 127.0.0.1:"
                  + server.port()
                  + ": an Aeron store server answers there; set TUTTI_STORE to aeron on this rank"
                  + " too, or on no rank");
    }
  }

  @Test
  void aServerOverTcpIsToldFromOneOverAeron() {
    try (TcpStoreServer server = new TcpStoreServer(0)) {
      assertThatThrownBy(() -> new AeronStore(options(server.port()).withTimeout(PASSING)))
          .isInstanceOf(StoreConnectionException.class)
          .hasMessageContaining("no store server at 127.0.0.1:" + server.port() + " within 8000 ms")
          .hasMessageContaining(
              "it closed the connection instead of answering, as a store of another kind would;"
                  + " TUTTI_STORE must be the same for all ranks and their launcher");
    }
  }

  /** A connection that a closing server did not accept must not be logged. */
  @Test
  void anAttemptOverUdpThatFailsIsNotLogged() throws Exception {
    List<String> logged = new CopyOnWriteArrayList<>();
    Handler handler =
        new StreamHandler() {
          @Override
          public void publish(LogRecord record) {
            logged.add(Arrays.toString(record.getParameters()));
          }
        };
    Logger logger = Logger.getLogger(SessionOpener.class.getName());
    logger.addHandler(handler);
    Timing timing = Timing.of(Duration.ofSeconds(5));
    EmbeddedDriver driver = EmbeddedDriver.start(options(0).directory(), "", timing, 1);
    try (var listener = new java.net.ServerSocket(0)) {
      int port = listener.getLocalPort();
      AeronStoreOptions udp = options(port).withTransport(Transport.UDP).withTimeout(LONG);
      FutureTask<?> opening = new FutureTask<>(() -> new AeronStore(udp));
      Thread opener = Thread.ofPlatform().daemon().start(opening);
      try (Control control = new Control(listener.accept(), timing)) {
        long deadline = System.nanoTime() + LONG.toNanos();
        tellSession(control, driver, driver.path(), 0, deadline);
        assertThat(control.readByte(deadline)).isEqualTo(Handshake.UDP);
      }
      // The client tries again, so the attempt has failed.
      try (Socket again = listener.accept()) {
        assertThat(again.isConnected()).isTrue();
        opener.interrupt();
      }
      assertFails(opening, StoreException.class, "interrupted while connecting");
      assertThat(logged).noneMatch(text -> text.contains("127.0.0.1:" + port));
    } finally {
      logger.removeHandler(handler);
      driver.close();
    }
  }

  /** Admits a client like a server. */
  private static void tellSession(
      Control control, EmbeddedDriver driver, String path, int bell, long deadline)
      throws IOException {
    Handshake.admit(control, JobToken.NONE, deadline);
    DriverDirectory folder = driver.directory();
    Handshake.tell(
        control,
        new Handshake.Session(10, 11, 1, bell, path, folder.path().toString(), folder.proof()));
  }

  @Test
  void aServerWhoseDriverStandsStillIsGivenUpAtTheDeadline() throws Exception {
    Timing timing = Timing.of(Duration.ofSeconds(5));
    EmbeddedDriver driver = EmbeddedDriver.start(options(0).directory(), "", timing, 1);
    try (var listener = new java.net.ServerSocket(0)) {
      AeronStoreOptions options = options(listener.getLocalPort());
      FutureTask<?> opening = start(() -> new AeronStore(options.withTimeout(PASSING)));
      Control control = new Control(listener.accept(), timing);
      long deadline = System.nanoTime() + LONG.toNanos();
      tellSession(control, driver, directory.resolve("none").toString(), 0, deadline);
      assertFails(
          opening,
          StoreConnectionException.class,
          "its media driver is not active (timeout 8000 ms)");
      control.close();
    } finally {
      driver.close();
    }
  }

  @Test
  void aServerWhoseDriverStopsJustThenIsGivenUpAtTheDeadline() throws Exception {
    Timing timing = Timing.of(Duration.ofSeconds(5));
    EmbeddedDriver folder = EmbeddedDriver.start(options(0).directory(), "", timing, 1);
    MediaDriver.Context context =
        new MediaDriver.Context()
            .aeronDirectoryName(directory.resolve("stopped").toString())
            .threadingMode(ThreadingMode.INVOKER)
            .termBufferSparseFile(true)
            .dirDeleteOnShutdown(true);
    try (MediaDriver driver = MediaDriver.launch(context);
        var listener = new java.net.ServerSocket(0)) {
      AeronStoreOptions options = options(listener.getLocalPort());
      FutureTask<?> opening = start(() -> new AeronStore(options.withTimeout(PASSING)));
      Control control = new Control(listener.accept(), timing);
      driver.sharedAgentInvoker().invoke(); // reports that it is alive, and is not asked again
      long deadline = System.nanoTime() + LONG.toNanos();
      tellSession(control, folder, driver.aeronDirectoryName(), 0, deadline);
      assertFails(
          opening,
          StoreConnectionException.class,
          "its media driver does not answer (timeout 8000 ms)");
      control.close();
    } finally {
      folder.close();
    }
  }

  @Test
  void threadsThatFindNoServerAllFailAtTheirDeadline() throws Exception {
    try (Socket held = holdPort()) {
      int port = held.getLocalPort();
      AeronStoreOptions options = options(port).withTimeout(Duration.ofSeconds(1));
      List<FutureTask<?>> opening = new ArrayList<>();
      long start = System.nanoTime();
      int threads = 60;
      for (int i = 0; i < threads; i++) {
        opening.add(start(() -> new AeronStore(options)));
      }
      for (FutureTask<?> task : opening) {
        assertFails(task, StoreConnectionException.class, "127.0.0.1:" + port + " within 1000 ms");
      }
      assertThat(System.nanoTime() - start)
          .as("less than half of what one after the other would take")
          .isLessThan(TimeUnit.SECONDS.toNanos(threads) / 2);
    }
  }

  @Test
  void whoWaitsForTheOpeningOfAnotherThreadCanBeInterrupted() throws Exception {
    try (var silent = new java.net.ServerSocket(0)) {
      AeronStoreOptions options = options(silent.getLocalPort()).withTimeout(LONG);
      FutureTask<?> first = new FutureTask<>(() -> new AeronStore(options));
      Thread opening = Thread.ofPlatform().daemon().start(first);
      try (Socket opened = silent.accept()) {
        FutureTask<?> second = new FutureTask<>(() -> new AeronStore(options));
        Thread thread = Thread.ofPlatform().daemon().start(second);
        // A thread that waited in a monitor would be blocked until the first one gives up.
        while (thread.getState() != Thread.State.TIMED_WAITING) {
          Thread.onSpinWait();
        }
        thread.interrupt();
        assertFails(second, StoreException.class, "interrupted while connecting");
        assertThat(opened.isConnected()).isTrue();
        opening.interrupt();
      }
      assertFails(first, StoreException.class, "interrupted while connecting");
    }
  }

  @Test
  void storesOfAProcessShareTheirSession() throws Exception {
    try (AeronStoreServer server = new AeronStoreServer(options(0))) {
      AeronStore first = new AeronStore(options(server.port()));
      AeronStore second = new AeronStore(options(server.port()));
      FutureTask<?> waiting = start(() -> first.get("never"));
      second.set("key", "value");
      second.close();
      second.close();
      assertThatThrownBy(() -> second.set("key", "value")).isInstanceOf(StoreClosedException.class);
      assertThat(first.check(List.of("key"))).isTrue();
      first.close();
      // Either "is closed" or, if this thread was held up, "was closed during a call".
      assertFails(waiting, StoreClosedException.class, "closed");
      try (AeronStore third = new AeronStore(options(server.port()))) {
        assertThat(third.check(List.of("key"))).isTrue();
      }
    }
  }

  @Test
  void bothSidesSleepAndAreWoken() throws Exception {
    int rounds = 0;
    InBell.link();
    try (AeronStoreServer server = new AeronStoreServer(options(0));
        AeronStore store = InBell.ready(new AeronStore(options(server.port())))) {
      int woken = 0;
      // More rounds than ten only where threads wait for a core.
      while (rounds < 10 || (woken <= rounds / 2 && rounds < 100)) {
        String key = "key" + rounds++;
        FutureTask<byte[]> waiting = start(() -> store.get(key));
        long deadline = System.nanoTime() + LONG.toNanos();
        while (!(server.sleeps() && store.isInBell())) {
          assertThat(System.nanoTime()).isLessThan(deadline);
          Thread.onSpinWait();
        }
        long start = System.nanoTime();
        store.set(key, "value");
        waiting.get(60, TimeUnit.SECONDS);
        woken += System.nanoTime() - start < TimeUnit.MILLISECONDS.toNanos(750) ? 1 : 0;
      }
      // If nobody rings its bell, the server checks after a second.
      assertThat(woken).as("of " + rounds + " rounds").isGreaterThan(rounds / 2);
    }
  }

  @Test
  void aThousandRanksMeet() throws Exception {
    int ranks = 1000;
    Duration limit = Duration.ofMinutes(4); // between the first rank and the last one
    try (AeronStoreServer server = new AeronStoreServer(options(0))) {
      List<String> keys = new ArrayList<>();
      for (int rank = 0; rank < ranks; rank++) {
        keys.add("rank" + rank);
      }
      List<FutureTask<Integer>> all = new ArrayList<>();
      for (int rank = 0; rank < ranks; rank++) {
        int own = rank;
        all.add(
            start(
                () -> {
                  try (AeronStore store =
                      new AeronStore(options(server.port()).withTimeout(limit))) {
                    store.set(keys.get(own), new byte[] {(byte) own});
                    int sum = 0;
                    for (byte[] value : store.multiGet(keys)) {
                      sum += value[0];
                    }
                    store.barrier("met", ranks, limit);
                    return sum;
                  }
                }));
      }
      int expected = 0;
      for (int rank = 0; rank < ranks; rank++) {
        expected += (byte) rank;
      }
      for (FutureTask<Integer> rank : all) {
        assertThat(rank.get(limit.toSeconds(), TimeUnit.SECONDS)).isEqualTo(expected);
      }
    }
  }
}
