package dev.tutti.cli.run;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.cli.process.Posix;
import dev.tutti.cli.rank.LaunchedProcess;
import dev.tutti.store.HashStore;
import java.io.IOException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.function.Consumer;
import java.util.function.Predicate;
import org.junit.jupiter.api.Order;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Tests what a signal to a launcher ends. */
@Order(1)
class StopSignalTest {
  private static final String[] SLEEPING = {"sh", "-c", "exec sleep 600"};

  private final TestLaunches launches = new TestLaunches();

  @Test
  void aSignalEndsRanksThatLinger(@TempDir Path directory) throws Exception {
    Path trapped = directory.resolve("trapped");
    String script =
        "[ $RANK = 1 ] && { "
            + TestLaunches.awaitFile(trapped)
            + "; exit 7; }; trap 'echo got INT; exit 0' INT; touch "
            + trapped
            + "; sleep 600 & wait";
    LaunchPlan plan = TestPlans.lingering(TestPlans.shell(2, script), Duration.ofHours(1));
    Launcher launcher = launches.launcher(plan, self -> self.signalled(Posix.SIGINT));
    assertThat(launcher.run()).isEqualTo(7);
    assertThat(launches.output.out(0)).containsExactly("got INT");
    assertThat(launches.messages.getFirst())
        .startsWith("the first to fail: rank 1 ended with exit code 7");
    assertThat(TestPlans.processesOf(plan.runId())).isEmpty();
  }

  /** Runs ranks, and sends a signal each time their lines are as given. */
  private void runInterrupted(LaunchPlan plan, List<Predicate<List<String>>> moments)
      throws Exception {
    Launcher launcher = launches.launcher(plan);
    Thread signaller =
        Thread.ofPlatform()
            .start(
                () -> {
                  try {
                    for (Predicate<List<String>> moment : moments) {
                      launches.output.await(moment);
                      launcher.signalled(Posix.SIGINT);
                    }
                  } catch (InterruptedException e) {
                    Thread.currentThread().interrupt();
                  }
                });
    assertThat(launcher.run()).isEqualTo(130);
    signaller.join();
    assertThat(TestPlans.processesOf(plan.runId())).isEmpty();
  }

  @Test
  void forwardsASignalAndIgnoresRestarts() throws Exception {
    LaunchPlan plan =
        TestPlans.of(
            2,
            3,
            Optional.empty(),
            "sh",
            "-c",
            "trap 'echo interrupted; exit 0' INT; echo ready; sleep 600 & wait");
    runInterrupted(plan, List.of(lines -> lines.size() == 2));
    for (int rank = 0; rank < 2; rank++) {
      assertThat(launches.output.out(rank)).containsExactly("ready", "interrupted");
    }
    assertThat(launches.messages).containsExactly("stopped by SIGINT");
  }

  @Test
  void aSignalWhileAFailedAttemptStopsIsTheEnd(@TempDir Path directory) throws Exception {
    Path trapped = directory.resolve("trapped");
    LaunchPlan plan =
        TestPlans.of(
            2,
            3,
            Optional.empty(),
            "sh",
            "-c",
            "[ $RANK = 0 ] && { "
                + TestLaunches.awaitFile(trapped)
                + "; exit 3; }; trap 'echo stopping; sleep 600' TERM; touch "
                + trapped
                + "; while :; do sleep 600 & wait $!; done");
    runInterrupted(plan, List.of(lines -> lines.contains("1:OUT:stopping")));
    assertThat(launches.messages).hasSize(2).last().isEqualTo("stopped by SIGINT");
    assertThat(launches.messages.getFirst()).startsWith("the first to fail: rank 0 ended");
    assertThat(launches.output.out(1)).containsExactly("stopping");
  }

  @Test
  void startsNoRankWhileASignalWaits(@TempDir Path logs) throws InterruptedException {
    LaunchPlan plan = TestPlans.of(3, 1, Optional.of(logs), SLEEPING);
    Launcher launcher =
        launches.launcher(
            plan,
            (self, method, _) -> {
              if (method.equals("begin")) {
                self.signalled(Posix.SIGTERM);
              }
            });
    assertThat(launcher.run()).isEqualTo(143);
    assertThat(launches.messages).containsExactly("stopped by SIGTERM");
    assertThat(logs).isEmptyDirectory();
  }

  @Test
  void startsNoMoreRanksOnceASignalCame(@TempDir Path logs) throws Exception {
    LaunchPlan plan = TestPlans.of(3, 0, Optional.of(logs), "sh", "-c", "echo $RANK");
    RankRange ranks = new RankRange(0, plan.localSize(), plan.masterAddress(), 4711);
    SingleNode node = new SingleNode(ranks, () -> {}, () -> {}, HashStore::new);
    Launcher launcher =
        new Launcher(plan, node, launches.output, launches.messages::add) {
          @Override
          LaunchedProcess start(
              int rank,
              int local,
              int restart,
              Map<String, String> environment,
              Consumer<Process> onExit)
              throws IOException {
            LaunchedProcess started = super.start(rank, local, restart, environment, onExit);
            if (local == 1) {
              signalled(Posix.SIGTERM);
            }
            return started;
          }
        };
    assertThat(launcher.run()).isEqualTo(143);
    assertThat(launches.messages).containsExactly("stopped by SIGTERM");
    Path attempt = logs.resolve(plan.runId()).resolve("attempt_0");
    assertThat(attempt.resolve("1")).exists();
    assertThat(attempt.resolve("2")).doesNotExist();
  }

  @Test
  void killsAtTheSecondSignal() throws Exception {
    LaunchPlan plan =
        TestLaunches.withGrace(
            TestPlans.shell(
                1, "trap 'echo no' INT; echo ready; while :; do sleep 600 & wait; done"),
            Duration.ofHours(1));
    runInterrupted(plan, List.of(lines -> lines.size() == 1, lines -> lines.size() == 2));
  }
}
