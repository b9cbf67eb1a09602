package dev.tutti.cli.run;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.spi.ForwardingTime;
import dev.tutti.spi.Time;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.Order;
import org.junit.jupiter.api.Test;

/** Tests what a launcher says about ranks that failed. */
@Order(1)
class FailureReportTest {
  private final TestLaunches launches = new TestLaunches();

  @Test
  void endsTheOthersWhenOneFailsAndReportsTheFirst() throws InterruptedException {
    LaunchPlan plan =
        TestPlans.shell(3, "echo one; [ $RANK = 1 ] && { echo boom >&2; exit 7; }; exec sleep 600");
    assertThat(launches.run(plan)).isEqualTo(7);
    assertThat(launches.messages).hasSize(1);
    List<String> report = launches.messages.getFirst().lines().toList();
    assertThat(report).hasSize(6);
    assertThat(report.get(0))
        .matches("the first to fail: rank 1 ended with exit code 7 after \\d+\\.\\d+ s");
    assertThat(report.get(1)).isEqualTo("  its last lines:");
    assertThat(report.subList(2, 4)).containsExactlyInAnyOrder("    one", "    boom");
    assertThat(report.get(4)).startsWith("  rank 0 was stopped by SIGTERM (exit code 143) after ");
    assertThat(report.get(5)).startsWith("  rank 2 was stopped by SIGTERM (exit code 143) after ");
  }

  @Test
  void reportsARankThatWasKilled() throws InterruptedException {
    LaunchPlan plan = TestPlans.shell(3, "[ $RANK = 2 ] && kill -9 $$; exec sleep 600");
    assertThat(launches.run(plan)).isEqualTo(137);
    assertThat(launches.messages.getFirst())
        .startsWith("the first to fail: rank 2 was killed by SIGKILL (exit code 137) after ")
        .contains("it printed nothing");
  }

  @Test
  void saysThatARankPrintedOnlyStackFrames() throws InterruptedException {
    assertThat(launches.run(TestPlans.shell(1, "printf '\\tat a.B.c(B.java:1)\\n' >&2; exit 1")))
        .isEqualTo(1);
    assertThat(launches.messages.getFirst()).endsWith("\n  it printed only stack frames");
  }

  @Test
  void countsTheTimesOfAReportFromTheStartOfTheAttempt() throws InterruptedException {
    LaunchPlan base = TestPlans.shell(2, "exit $((RANK + 3))");
    // On a busy machine, the last of many ranks starts as late as these.
    AtomicLong passed = new AtomicLong();
    Time time =
        new ForwardingTime(Time.SYSTEM) {
          @Override
          public long nanoTime() {
            return super.nanoTime() + passed.get();
          }
        };
    Launcher launcher =
        launches.launcher(
            TestPlans.lingering(base, Duration.ofHours(1)),
            time,
            (_, method, _) -> {
              if (method.equals("begin")) {
                passed.addAndGet(Duration.ofSeconds(1000).toNanos());
              }
            });
    assertThat(launcher.run()).isBetween(3, 4);
    assertThat(launches.messages).hasSize(1);
    assertThat(launches.messages.getFirst().lines().filter(line -> line.contains(" ended with ")))
        .hasSize(2)
        .allSatisfy(
            line ->
                assertThat(Double.parseDouble(line.replaceFirst(".* after (.*) s", "$1")))
                    .isGreaterThanOrEqualTo(1000.0));
  }

  @Test
  void showsNoMoreThanTheLastLines() throws InterruptedException {
    assertThat(launches.run(TestPlans.shell(1, "seq 1 100; exit 1"))).isEqualTo(1);
    assertThat(launches.messages.getFirst().lines().skip(2))
        .hasSize(20)
        .startsWith("    81")
        .endsWith("    100");
  }

  @Test
  void saysNothingOfTheOutputIfNoLastLinesAreWanted() throws InterruptedException {
    assertThat(launches.run(TestPlans.withoutTail(TestPlans.shell(1, "echo boom; exit 1"))))
        .isEqualTo(1);
    assertThat(launches.output.out(0)).containsExactly("boom");
    assertThat(launches.messages).hasSize(1);
    assertThat(launches.messages.getFirst())
        .matches("the first to fail: rank 0 ended with exit code 1 after \\d+\\.\\d+ s");
  }

  @Test
  void leavesStackFramesOutOfTheLastLines() throws InterruptedException {
    String script =
        """
        printf 'Exception in thread "main" java.lang.Error: boom\n'
        i=0; while [ $i -lt 30 ]; do printf '\tat a.b/c.D.e(D.java:%d)\n' $i; i=$((i+1)); done
        printf 'Caused by: java.io.IOException: deep\n\tat a.B.<init>(B.java:1)\n\t... 29 more\n'
        printf '\tat sea (a line of its own)\n'; exit 1
        """;
    assertThat(launches.run(TestPlans.shell(1, script))).isEqualTo(1);
    assertThat(launches.messages.getFirst().lines().skip(2))
        .containsExactly(
            "    Exception in thread \"main\" java.lang.Error: boom",
            "    Caused by: java.io.IOException: deep",
            "    \tat sea (a line of its own)");
    assertThat(launches.output.out(0)).hasSize(35).contains("\tat a.b/c.D.e(D.java:29)");
  }
}
