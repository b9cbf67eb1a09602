package dev.tutti.aeron.cluster;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.Store;
import dev.tutti.aeron.AeronStoreOptions;
import dev.tutti.aeron.LogLines;
import dev.tutti.aeron.StoreChild;
import dev.tutti.aeron.cluster.member.ClusterNode;
import dev.tutti.spi.Time;
import dev.tutti.store.JobToken;
import io.aeron.cluster.codecs.CanvassPositionDecoder;
import io.aeron.cluster.codecs.NewLeadershipTermDecoder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.locks.LockSupport;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/**
 * Tests that a leader which starts anew leaves the lead to others, and then follows them, and that
 * a member starts anew which the others have left in an election.
 */
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
      awaitReady(List.of(server));
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
            ClusterChild.start(
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

  private AeronClusterServer start(String members, int member, AeronStoreOptions options) {
    return start(members, member, options, Time.SYSTEM);
  }

  private AeronClusterServer start(
      String members, int member, AeronStoreOptions options, Time time) {
    return new AeronClusterServer(
        members,
        member,
        directory.resolve("m" + member),
        options,
        Long.MAX_VALUE,
        ClusterNode.MOST_CLIENTS,
        time);
  }

  private static void awaitReady(List<AeronClusterServer> servers) {
    for (AeronClusterServer server : servers) {
      while (!server.isReady()) {
        assertThat(server.isRunning()).isTrue();
        LockSupport.parkNanos(1_000_000);
      }
    }
  }

  /** Without that, a member that lost an election late would never be ready, and not say why. */
  @Test
  void aLeaderThatNobodyFollowsJoinsAnotherElection() throws Exception {
    String members = TestCluster.freeMembers();
    AeronStoreOptions options =
        AeronStoreOptions.of("localhost", 0)
            .withDirectory(directory)
            .withToken(JobToken.NONE)
            .withLease(Duration.ofSeconds(3))
            .withTimeout(Duration.ofSeconds(200));
    try (AeronClusterServer first = start(members, 0, options);
        AeronClusterServer second = start(members, 1, options);
        AeronClusterServer third = start(members, 2, options);
        Store store = new AeronClusterStore(members, options)) {
      store.set("key", "value");
      awaitReady(List.of(first, second, third));
    }
    AtomicBoolean isAlone = new AtomicBoolean();
    Time time = new FastTime(isAlone::get);
    try (LogLines lines = new LogLines(AeronClusterServer.class);
        AeronClusterServer left = start(members, 0, options, time)) {
      try (Voter voter = new Voter(directory, members)) {
        voter.voteUntil(NewLeadershipTermDecoder.TEMPLATE_ID);
        assertThat(left.isLeader()).isTrue();
        assertThat(left.isReady()).isFalse();
        isAlone.set(true);
        voter.voteUntil(CanvassPositionDecoder.TEMPLATE_ID);
      }
      assertThat(
              lines.has(
                  ("member 0 of the store cluster at %s has waited for 6 s in an election that the"
                          + " others do not take part in; it starts anew")
                      .formatted(members)))
          .isTrue();
      try (AeronClusterServer second = start(members, 1, options);
          AeronClusterServer third = start(members, 2, options);
          Store store = new AeronClusterStore(members, options)) {
        awaitReady(List.of(left, second, third));
        assertThat(store.get("key")).asString(StandardCharsets.UTF_8).isEqualTo("value");
      }
    }
  }
}
