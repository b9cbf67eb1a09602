package dev.tutti.aeron;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.store.JobToken;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/**
 * Serves 200 sessions through shared memory, 50 in each of four processes: 200 processes are too
 * many for a small machine, and the server sees no difference.
 */
@Timeout(300)
@Tag("full")
class ManyClientsTest {
  private static final int PROCESSES = 4;
  private static final int SESSIONS = 50;

  @TempDir private Path directory;

  @Test
  void twoHundredClientsMeet() throws Exception {
    int all = PROCESSES * SESSIONS;
    AeronStoreOptions options =
        AeronStoreOptions.of("127.0.0.1", 0).withToken(JobToken.NONE).withDirectory(directory);
    List<StoreChild> children = new ArrayList<>();
    try (AeronStoreServer server = new AeronStoreServer(options, null, all)) {
      for (int i = 0; i < PROCESSES; i++) {
        children.add(
            StoreChild.start(
                "clients",
                server.port(),
                "TUTTI_AERON_DIR=" + directory,
                "FIRST=" + i * SESSIONS,
                "COUNT=" + SESSIONS,
                "ALL=" + all));
      }
      for (StoreChild child : children) {
        assertThat(child.line()).isEqualTo("RIGHT " + SESSIONS);
      }
    } finally {
      for (StoreChild child : children) {
        child.close();
      }
    }
  }
}
