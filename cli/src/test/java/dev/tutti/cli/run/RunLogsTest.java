package dev.tutti.cli.run;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Optional;
import org.junit.jupiter.api.Order;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Tests where the output of ranks is written. */
@Order(1)
class RunLogsTest {
  private final TestLaunches launches = new TestLaunches();

  @Test
  void writesLogsByAttemptAndRank(@TempDir Path directory) throws Exception {
    LaunchPlan plan =
        TestPlans.of(
            2,
            1,
            Optional.of(directory),
            "sh",
            "-c",
            "echo out $RANK; echo err $RANK >&2; exit $((1 - TORCHELASTIC_RESTART_COUNT))");
    assertThat(launches.run(plan)).isZero();
    Path last = directory.resolve(plan.runId()).resolve("attempt_1").resolve("1");
    assertThat(Files.readString(last.resolve("stdout.log"))).isEqualTo("out 1\n");
    assertThat(Files.readString(last.resolve("stderr.log"))).isEqualTo("err 1\n");
    assertThat(launches.messages.getFirst()).endsWith("  logs: " + directory.resolve(plan.runId()));
  }

  @Test
  void keepsTheLogsOfAnEarlierRunOfTheSameName(@TempDir Path directory) throws Exception {
    LaunchPlan plan = TestPlans.of(2, 0, Optional.of(directory), "sh", "-c", "echo $RANK");
    assertThat(launches.run(plan)).isZero();
    assertThat(launches.messages).isEmpty();
    Path first = directory.resolve(plan.runId());
    Path log = Path.of("attempt_0", "1", "stdout.log");
    for (int number = 2; number <= 3; number++) {
      Files.writeString(first.resolve(log), "first");
      assertThat(launches.run(plan)).isZero();
      Path later = directory.resolve(plan.runId() + "_" + number);
      assertThat(launches.messages)
          .last()
          .isEqualTo(first + " has logs of an earlier run; the logs of this run are in " + later);
      assertThat(later.resolve(log)).hasContent("1");
    }
    assertThat(first.resolve(log)).hasContent("first");
  }
}
