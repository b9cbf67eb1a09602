package dev.tutti.cli.run;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.file.Path;
import java.time.Duration;
import org.junit.jupiter.api.Order;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Tests that no process of a rank outlives the launcher. */
@Order(1)
class LeftoversTest {
  private final TestLaunches launches = new TestLaunches();

  @Test
  void killsARankThatIgnoresSigterm(@TempDir Path directory) throws InterruptedException {
    Path trapped = directory.resolve("trapped");
    LaunchPlan base =
        TestPlans.shell(
            2,
            "[ $RANK = 0 ] && { "
                + TestLaunches.awaitFile(trapped)
                + "; exit 5; }; trap '' TERM; touch "
                + trapped
                + "; while :; do sleep 600; done");
    LaunchPlan plan = TestLaunches.withGrace(base, Duration.ofMillis(300));
    assertThat(launches.launcher(plan).run()).isEqualTo(5);
    // The launcher does not wait for the end of a child of the rank that it has killed.
    TestPlans.awaitNoProcessOf(plan.runId());
    assertThat(launches.messages.getFirst())
        .contains("rank 1 was stopped by SIGKILL (exit code 137)");
  }

  @Test
  void endsWhatARankLeavesBehind() throws InterruptedException {
    LaunchPlan plan = TestPlans.shell(2, "sleep 600 & echo started");
    assertThat(launches.run(plan)).isZero();
  }

  @Test
  void endsTheWholeTreeOfARank() throws InterruptedException {
    LaunchPlan plan =
        TestPlans.shell(2, "[ $RANK = 1 ] && exit 3; sh -c 'sleep 600; echo no' ; echo no");
    assertThat(launches.run(plan)).isEqualTo(3);
    assertThat(launches.output.lines()).isEmpty();
  }

  @Tag("full")
  @Test
  void leaksNoProcessInFiftyRuns() throws InterruptedException {
    for (int i = 0; i < 50; i++) {
      String script =
          i % 2 == 0 ? "sleep 600 & exit 0" : "[ $RANK = 1 ] && exit 1; sleep 600 & sleep 600";
      assertThat(launches.run(TestPlans.shell(2, script))).isEqualTo(i % 2);
    }
  }
}
