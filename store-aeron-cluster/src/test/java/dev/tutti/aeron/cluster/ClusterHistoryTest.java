package dev.tutti.aeron.cluster;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.contracts.history.HistoryRun;
import dev.tutti.store.JobToken;
import java.nio.file.Path;
import java.time.Duration;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Tests what clients of a cluster observe while its members go away and come back. */
@Timeout(value = 15, unit = TimeUnit.MINUTES)
class ClusterHistoryTest {
  private static final int CALLS = 300;

  @TempDir private Path directory;

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

  /**
   * Goes through each fault once, or for {@code -Dtutti.historyMinutes}; prints what happened and
   * the longest time without an answer.
   */
  @Tag("full")
  @Test
  @Timeout(value = 1, unit = TimeUnit.DAYS)
  void membersThatFailInEveryWayLoseNothing() throws Exception {
    try (ClusterCampaign campaign =
        new ClusterCampaign(directory, Long.getLong("tutti.historySeed", 1))) {
      campaign.run(Duration.ofMinutes(Long.getLong("tutti.historyMinutes", 0)));
    }
  }
}
