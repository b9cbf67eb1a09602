package dev.tutti.cli.run;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.extension.RegisterExtension;

/** Tests that ranks are replaced while the others continue. */
@Timeout(600)
class ElasticRunTest {
  @RegisterExtension private final TestRuns runs = new TestRuns();

  @Test
  void aRankIsReplacedWhileTheOthersContinue() throws Exception {
    try (CommandProcess run =
        runs.startRanks(ElasticRank.class, "--nproc=3", "--elastic", "--max-restarts=1")) {
      assertThat(run.exitCode()).as(() -> run.lines().toString()).isZero();
      for (int rank = 0; rank < 3; rank++) {
        assertThat(run.lines()).contains("[rank%d] END size 3 right true".formatted(rank));
      }
      assertThat(run.lines())
          .anyMatch(line -> line.endsWith("joins in its place, restart 1 of 1"))
          .noneMatch(line -> line.contains("restarting all ranks"));
    }
  }
}
