package dev.tutti.aeron;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.store.JobToken;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
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

  @Test
  void aLeaderWhoseLogReachesNobodyLeavesTheLead() throws Exception {
    String members = TestCluster.freeMembers();
    List<StoreChild> children = new ArrayList<>();
    try {
      for (int i = 0; i < TestCluster.SIZE; i++) {
        children.add(
            StoreChild.start(
                "member",
                i,
                "MEMBERS=" + members,
                "DATA=" + directory.resolve("m" + i),
                "TUTTI_AERON_DIR=" + directory,
                "JAVA_TOOL_OPTIONS=" + StuckLog.flags(directory.resolve("stuck" + i))));
      }
      for (StoreChild child : children) {
        assertThat(child.line()).isEqualTo("READY true");
      }
      AeronStoreOptions options =
          AeronStoreOptions.of("localhost", 0)
              .withDirectory(directory)
              .withToken(JobToken.NONE)
              .withTimeout(Duration.ofSeconds(200));
      try (AeronClusterStore store = new AeronClusterStore(members, options)) {
        assertThat(store.add("count", 1)).isEqualTo(1);
        int leader = store.leader();
        Files.createFile(directory.resolve("stuck" + leader));
        assertThat(store.add("count", 1)).isEqualTo(2);
        assertThat(store.leader()).isNotEqualTo(leader);
      }
    } finally {
      for (StoreChild child : children) {
        child.close();
      }
    }
  }
}
