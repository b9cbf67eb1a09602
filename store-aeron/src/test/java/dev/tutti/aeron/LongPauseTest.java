package dev.tutti.aeron;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowable;

import dev.tutti.StoreTimeoutException;
import dev.tutti.store.JobToken;
import java.nio.file.Path;
import java.time.Duration;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Stops a client for three leases, as a garbage collection pause might. */
@Timeout(300)
@Tag("full")
class LongPauseTest {
  private static final long PAUSE_NANOS = TimeUnit.SECONDS.toNanos(15);

  /** A little less than the driver lets clients be silent. */
  private static final long LONGEST_NANOS = TimeUnit.SECONDS.toNanos(28);

  private static final int MOST_TRIES = 3;

  @TempDir private Path directory;

  @Test
  void aStoppedClientIsNotTakenForALostOne() throws Exception {
    boolean isKnown = false;
    for (int tries = 0; tries < MOST_TRIES && !isKnown; tries++) {
      isKnown = isServedAfterAPause();
      assertThat(directory).isEmptyDirectory();
    }
    assertThat(isKnown).isTrue();
  }

  /** Returns false if the machine kept the client stopped for too long. */
  private boolean isServedAfterAPause() throws Exception {
    AeronStoreOptions options =
        AeronStoreOptions.of("127.0.0.1", 0).withDirectory(directory).withToken(JobToken.NONE);
    try (AeronStore store = new AeronStore(options.withServer(true))) {
      try (StoreChild client =
          StoreChild.start("wait", store.port(), "TUTTI_AERON_DIR=" + directory)) {
        assertThat(client.line()).isEqualTo("READY true");
        client.signal("STOP");
        long start = System.nanoTime();
        // The key for which the stopped client waits is set at once; the reply waits for the
        // client.
        store.set("go", "1");
        while (System.nanoTime() - start < PAUSE_NANOS) {
          assertThat(store.queueLength("nothing")).isZero();
          assertThat(catchThrowable(() -> store.get("never", Duration.ofMillis(100))))
              .isInstanceOf(StoreTimeoutException.class);
        }
        client.signal("CONT");
        if (System.nanoTime() - start > LONGEST_NANOS) {
          return false;
        }
        assertThat(client.line()).isEqualTo("DONE");
        return true;
      }
    }
  }
}
