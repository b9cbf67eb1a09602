package dev.tutti.aeron.cluster;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.tutti.StoreConnectionException;
import dev.tutti.aeron.AeronStoreOptions;
import dev.tutti.aeron.StoreChild;
import dev.tutti.store.JobToken;
import io.aeron.driver.MediaDriver;
import io.aeron.driver.ThreadingMode;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.stream.Stream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Tests clients of a cluster with a media driver that runs elsewhere. */
@Tag("full")
class ClusterDriverTest {
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

  private MediaDriver launch() {
    return MediaDriver.launch(
        new MediaDriver.Context()
            .aeronDirectoryName(options().driver())
            .threadingMode(ThreadingMode.SHARED)
            .clientLivenessTimeoutNs(LIVENESS_NANOS)
            .termBufferSparseFile(true)
            .dirDeleteOnShutdown(true));
  }

  @Test
  void aClientOfAClusterThatWasStoppedForTooLongIsTold() throws Exception {
    String members = TestCluster.freeMembers();
    String member = members.substring(0, members.indexOf(','));
    try (MediaDriver driver = launch();
        AeronClusterServer server =
            new AeronClusterServer(
                member,
                0,
                directory.resolve("data"),
                // A member forgets a client that is silent for three leases.
                options().withDriver("").withLease(Duration.ofSeconds(10)));
        StoreChild client =
            ClusterChild.start(
                "wait",
                0,
                "MEMBERS=" + member,
                "TUTTI_AERON_DIR=" + directory,
                "TUTTI_AERON_DRIVER=" + driver.aeronDirectoryName())) {
      assertThat(client.line()).isEqualTo("READY false");
      client.pause(PAUSE_NANOS);
      assertThat(client.line())
          .startsWith("FAILED dev.tutti.StoreConnectionException: session with store cluster at")
          .contains("is lost: this process or the media driver stalled for too long");
      assertThat(server.isRunning()).isTrue();
    }
  }

  @Test
  void aClientOfAClusterIsToldWhereItEndsBeforeThereIsALeader() throws Exception {
    String members = TestCluster.freeMembers();
    MediaDriver driver = launch();
    FutureTask<?> opening = new FutureTask<>(() -> new AeronClusterStore(members, options()));
    try {
      Thread.ofVirtual().start(opening);
      long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(LIMIT_SECONDS);
      while (publications(driver) < TestCluster.SIZE) {
        assertThat(System.nanoTime()).isLessThan(deadline);
        LockSupport.parkNanos(1_000_000);
      }
    } finally {
      driver.close();
    }
    assertFails(opening, "no session with the store cluster at " + members);
    assertThat(directory).isEmptyDirectory();
  }

  private static void assertFails(FutureTask<?> call, String message) {
    assertThatThrownBy(() -> call.get(LIMIT_SECONDS, TimeUnit.SECONDS))
        .isInstanceOf(ExecutionException.class)
        .cause()
        .isInstanceOf(StoreConnectionException.class)
        .hasMessageContaining(message);
  }

  private static long publications(MediaDriver driver) throws IOException {
    try (Stream<Path> files =
        Files.walk(Path.of(driver.aeronDirectoryName()).resolve("publications"))) {
      return files.filter(Files::isRegularFile).count();
    } catch (UncheckedIOException e) {
      return 0;
    }
  }
}
