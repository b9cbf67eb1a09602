package dev.tutti.aeron;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.tutti.StoreConnectionException;
import dev.tutti.StoreException;
import dev.tutti.aeron.AeronStoreOptions.Transport;
import dev.tutti.shared.Until;
import dev.tutti.store.JobToken;
import io.aeron.driver.MediaDriver;
import io.aeron.driver.ThreadingMode;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.junit.jupiter.api.Order;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Tests with a media driver that runs elsewhere, with its own settings. */
@Order(1)
class ExternalDriverTest {
  /** How long a client may be silent before the driver frees what it holds. */
  private static final long LIVENESS_NANOS = TimeUnit.SECONDS.toNanos(10);

  /** Longer than that. */
  private static final long PAUSE_NANOS = LIVENESS_NANOS + TimeUnit.SECONDS.toNanos(2);

  private static final int LIMIT_SECONDS = 60;

  @TempDir private Path directory;

  private AeronStoreOptions options() {
    return AeronStoreOptions.of("127.0.0.1", 0)
        .withDirectory(directory)
        .withDriver(directory.resolve("external").toString())
        .withToken(JobToken.NONE);
  }

  @Test
  void serverAndClientsUseIt() {
    MediaDriver.Context context =
        new MediaDriver.Context()
            .aeronDirectoryName(options().driver())
            .threadingMode(ThreadingMode.SHARED)
            .termBufferSparseFile(true)
            .dirDeleteOnShutdown(true);
    try (MediaDriver driver = MediaDriver.launch(context)) {
      try (AeronStore store = new AeronStore(options().withServer(true));
          AeronStore far =
              new AeronStore(options().withPort(store.port()).withTransport(Transport.UDP))) {
        assertThat(store.driver()).isEqualTo(driver.aeronDirectoryName());
        assertThat(far.driver()).isEqualTo(driver.aeronDirectoryName());
        assertThat(store.isShared()).isTrue();
        assertThat(far.isShared()).isFalse();
        byte[] value = new byte[1 << 20];
        value[4711] = 1;
        far.set("key", value);
        assertThat(store.get("key")).isEqualTo(value);
        assertThat(far.get("key")).isEqualTo(value);
      }
      assertThat(directory.toFile().list()).containsExactly("external");
    }
    assertThat(directory).isEmptyDirectory();
  }

  private MediaDriver launch(long livenessNanos) {
    return MediaDriver.launch(context(livenessNanos));
  }

  private MediaDriver.Context context(long livenessNanos) {
    return new MediaDriver.Context()
        .aeronDirectoryName(options().driver())
        .threadingMode(ThreadingMode.SHARED)
        .clientLivenessTimeoutNs(livenessNanos)
        .termBufferSparseFile(true)
        .dirDeleteOnShutdown(true);
  }

  private static FutureTask<?> startWait(AeronStore store) {
    FutureTask<?> task = new FutureTask<>(() -> store.get("never"));
    Thread.ofVirtual().start(task);
    return task;
  }

  private static void assertFails(FutureTask<?> call, String message) {
    assertThatThrownBy(() -> call.get(LIMIT_SECONDS, TimeUnit.SECONDS))
        .isInstanceOf(ExecutionException.class)
        .cause()
        .isInstanceOf(StoreConnectionException.class)
        .hasMessageContaining(message);
  }

  private boolean isEmpty() throws IOException {
    try (Stream<Path> files = Files.list(directory)) {
      return files.findAny().isEmpty();
    }
  }

  @Test
  void whereItEndsSoDoServerAndCalls() throws IOException {
    MediaDriver driver = launch(LIVENESS_NANOS);
    AeronStoreServer server = new AeronStoreServer(options());
    try (AeronStore store = new AeronStore(options().withPort(server.port()))) {
      FutureTask<?> waiting = startWait(store);
      store.set("key", "value");
      assertThat(server.isRunning()).isTrue();
      driver.close();
      assertFails(waiting, "store server at 127.0.0.1:" + server.port());
    } finally {
      driver.close();
    }
    Until.holds(this::isEmpty);
    assertThat(server.isRunning()).isFalse();
    server.close();
  }

  /** A server and a client of another one, each a process of its own. */
  @Test
  void whoWasStoppedForTooLongIsLost() throws Exception {
    try (MediaDriver driver = launch(LIVENESS_NANOS);
        AeronStore store = new AeronStore(options().withServer(true));
        StoreChild client = start(driver, "will", store.port());
        StoreChild server = start(driver, "serve", 0)) {
      assertThat(client.line()).isEqualTo("READY true");
      int port = Integer.parseInt(server.line().substring("READY ".length()));
      AeronStoreOptions far = options().withDriver("").withTransport(Transport.UDP);
      try (AeronStore ofServer = new AeronStore(far.withPort(port))) {
        FutureTask<?> waiting = startWait(ofServer);
        ofServer.set("key", "value");
        StoreChild.pause(PAUSE_NANOS, server, client);
        assertFails(waiting, "store server at 127.0.0.1:" + port + " is gone: it was closed");
      }
      assertThat(client.line())
          .startsWith("FAILED dev.tutti.StoreConnectionException: session with store server at")
          .contains("is lost: this process or the media driver stalled for too long");
      assertThat(store.get("will/1", Duration.ofSeconds(LIMIT_SECONDS)))
          .asString(StandardCharsets.UTF_8)
          .isEqualTo("gone");
    }
  }

  private StoreChild start(MediaDriver driver, String role, int port) throws IOException {
    return StoreChild.start(
        role,
        port,
        "TUTTI_AERON_DIR=" + directory,
        "TUTTI_AERON_DRIVER=" + driver.aeronDirectoryName());
  }

  @Test
  void clientsOfOneServerDoNotStopThoseOfAnother() {
    try (MediaDriver driver = launch(LIVENESS_NANOS);
        AeronStore idle = new AeronStore(options().withServer(true));
        AeronStore store = new AeronStore(options().withServer(true))) {
      assertThat(idle.driver()).isEqualTo(driver.aeronDirectoryName());
      byte[] value = new byte[1 << 20];
      value[4711] = 1;
      store.set("key", value);
      assertThat(store.get("key", Duration.ofSeconds(LIMIT_SECONDS))).isEqualTo(value);
      assertThat(idle.check(List.of("key"))).isFalse();
    }
  }

  @ParameterizedTest
  @ValueSource(ints = {0x10000, 0x100})
  void oneOfAnotherVersionIsNamed(int version) throws Exception {
    Path old = Files.createDirectory(directory.resolve("old"));
    try (MediaDriver driver = launch(LIVENESS_NANOS)) {
      Files.copy(Path.of(driver.aeronDirectoryName()).resolve("cnc.dat"), old.resolve("cnc.dat"));
    }
    try (FileChannel file = FileChannel.open(old.resolve("cnc.dat"), StandardOpenOption.WRITE)) {
      file.write(
          ByteBuffer.allocate(Integer.BYTES).order(ByteOrder.nativeOrder()).putInt(version).flip());
    }
    AeronStoreOptions options = options().withDriver(old.toString());
    String reason = "the media driver in " + old + " cannot be used:";
    assertThatThrownBy(() -> new AeronStoreServer(options))
        .isInstanceOf(StoreException.class)
        .hasMessageContaining(reason);
    try (AeronStoreServer server = new AeronStoreServer(options.withDriver(""))) {
      AeronStoreOptions far = options.withTransport(Transport.UDP).withPort(server.port());
      assertThatThrownBy(() -> new AeronStore(far))
          .isInstanceOf(StoreException.class)
          .hasMessageContaining(reason);
    }
    assertThat(directory.toFile().list()).containsExactly("old");
  }

  @Test
  void oneThatRefusesAClientIsNamedAtOnce() {
    try (MediaDriver driver =
            MediaDriver.launch(
                context(LIVENESS_NANOS).nameResolver((name, parameter, again) -> null));
        AeronStoreServer server = new AeronStoreServer(options().withDriver(""))) {
      assertThat(options().driver()).isEqualTo(driver.aeronDirectoryName());
      AeronStoreOptions far = options().withTransport(Transport.UDP).withPort(server.port());
      assertThatThrownBy(() -> new AeronStore(far))
          .isInstanceOf(StoreConnectionException.class)
          .hasMessageContaining("store server at 127.0.0.1:" + server.port())
          .hasMessageContaining("the media driver refuses this process: ");
    }
  }

  @Test
  void oneThatDoesNotRunIsNamed() {
    assertThatThrownBy(() -> new AeronStore(options().withServer(true)))
        .isInstanceOf(StoreException.class)
        .hasMessageContaining("no media driver is running in " + options().driver())
        .hasMessageContaining("TUTTI_AERON_DRIVER");
    assertThat(directory).isEmptyDirectory();
  }
}
