package dev.tutti.aeron;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.store.JobToken;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.time.Duration;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Tests that a leader which starts anew leaves the lead to others, and then follows them. */
@Timeout(300)
class SteppingDownTest {
  @TempDir private Path directory;

  @Test
  void theOthersElectALeaderAndItComesBack() throws Exception {
    try (TestCluster cluster = new TestCluster(directory, JobToken.NONE);
        LogLines lines = new LogLines(AeronClusterServer.class);
        AeronClusterStore store =
            new AeronClusterStore(
                cluster.members, cluster.options().withTimeout(Duration.ofSeconds(200)))) {
      store.set("key", "value");
      int former = store.leader();
      AeronClusterServer server = cluster.servers().get(former);
      server.stepDown();
      assertThat(server.isRunning()).isTrue();
      assertThat(
              lines.has(
                  ("member %d of the store cluster at %s leads, but the members have confirmed no"
                          + " request for 20 s; it starts anew")
                      .formatted(former, cluster.members)))
          .isTrue();
      assertThat(store.get("key")).asString(StandardCharsets.UTF_8).isEqualTo("value");
      assertThat(store.leader()).isNotEqualTo(former);
      while (!server.isReady()) {
        assertThat(server.isRunning()).isTrue();
        Thread.onSpinWait();
      }
      assertThat(store.add("count", 1)).isEqualTo(1);
    }
  }
}
