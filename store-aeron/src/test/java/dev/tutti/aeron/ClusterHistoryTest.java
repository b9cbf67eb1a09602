package dev.tutti.aeron;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.store.JobToken;
import dev.tutti.testing.history.HistoryRun;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Random;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Tests what clients of a cluster observe while its members go away and come back. */
@Timeout(value = 15, unit = TimeUnit.MINUTES)
class ClusterHistoryTest {
  private static final int CALLS = 300;
  private static final int FAULTS = 4;

  @TempDir private Path directory;

  private final List<StoreChild> children = new ArrayList<>();

  @Test
  void aRestartedLeaderLosesNothing() throws Exception {
    try (TestCluster cluster = new TestCluster(directory, JobToken.NONE);
        AeronClusterStore store = cluster.connect();
        HistoryRun run = new HistoryRun(1, 3, true, cluster::connect)) {
      run.awaitAnswers(CALLS);
      cluster.restart(store.leader());
      run.awaitAnswers(CALLS);
      assertThat(run.end()).isEmpty();
    }
  }

  private StoreChild start(String members, int member) throws Exception {
    return StoreChild.start(
        "member",
        member,
        "MEMBERS=" + members,
        "DATA=" + directory.resolve("m" + member),
        "TUTTI_AERON_LEASE=" + TestCluster.LEASE.toSeconds() + "s",
        "TUTTI_AERON_DIR=" + directory);
  }

  /** Kills, stops, or kills and wipes members at random, one at a time, then kills all of them. */
  @Tag("full")
  @Test
  void killedAndStoppedAndWipedMembersLoseNothing() throws Exception {
    String members = TestCluster.freeMembers();
    AeronStoreOptions options =
        AeronStoreOptions.of("localhost", 0)
            .withToken(JobToken.NONE)
            .withLease(TestCluster.LEASE)
            .withTimeout(TestCluster.LEASE.multipliedBy(5));
    Random random = new Random(1);
    try {
      for (int i = 0; i < TestCluster.SIZE; i++) {
        children.add(start(members, i));
      }
      awaitReady();
      try (HistoryRun run =
          new HistoryRun(2, 3, true, () -> new AeronClusterStore(members, options))) {
        for (int i = 0; i < FAULTS; i++) {
          run.awaitAnswers(CALLS);
          int member = random.nextInt(TestCluster.SIZE);
          switch (i % 3) {
            case 0 -> children.get(member).kill();
            case 1 -> {
              children.get(member).kill();
              wipe(directory.resolve("m" + member));
            }
            default -> {
              children.get(member).signal("STOP");
              run.awaitAnswers(CALLS);
              children.get(member).signal("CONT");
            }
          }
          run.awaitAnswers(CALLS);
          if (i % 3 < 2) {
            children.set(member, start(members, member));
            assertThat(children.get(member).line()).isEqualTo("READY true");
          }
        }
        run.awaitAnswers(CALLS);
        for (StoreChild child : children) {
          child.kill();
        }
        for (int i = 0; i < TestCluster.SIZE; i++) {
          children.set(i, start(members, i));
        }
        awaitReady();
        run.awaitAnswers(CALLS);
        assertThat(run.end()).isEmpty();
      }
    } finally {
      for (StoreChild child : children) {
        child.close();
      }
    }
  }

  private void awaitReady() throws Exception {
    for (StoreChild child : children) {
      assertThat(child.line()).isEqualTo("READY true");
    }
  }

  private static void wipe(Path folder) throws IOException {
    try (Stream<Path> all = Files.walk(folder)) {
      for (Path path : all.sorted(Comparator.reverseOrder()).toList()) {
        Files.delete(path);
      }
    }
  }
}
