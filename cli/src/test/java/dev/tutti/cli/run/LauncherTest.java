package dev.tutti.cli.run;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.tutti.cli.process.LaunchException;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.CopyOnWriteArrayList;
import org.junit.jupiter.api.Order;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Tests how a launcher runs, ends and restarts the ranks of a node. */
@Order(1)
class LauncherTest {
  private final TestLaunches launches = new TestLaunches();

  @Test
  void givesEachRankItsEnvironment() throws InterruptedException {
    LaunchPlan plan =
        TestPlans.shell(3, "echo $RANK $LOCAL_RANK $WORLD_SIZE $MASTER_ADDR:$MASTER_PORT");
    assertThat(launches.run(plan)).isZero();
    for (int rank = 0; rank < 3; rank++) {
      assertThat(launches.output.out(rank))
          .containsExactly(rank + " " + rank + " 3 127.0.0.1:4711");
    }
    assertThat(launches.messages).isEmpty();
  }

  @Test
  void givesRanksNoInput() throws InterruptedException {
    assertThat(launches.run(TestPlans.shell(1, "read line && echo got || echo nothing"))).isZero();
    assertThat(launches.output.out(0)).containsExactly("nothing");
  }

  @Test
  void doesNotStartARankAgainThatSaysItWouldFailAgain() throws InterruptedException {
    LaunchPlan plan =
        TestPlans.of(
            2,
            2,
            Optional.empty(),
            "sh",
            "-c",
            "echo $TUTTI_X_NO_RESTART; [ $RANK = 1 ] && { touch $TUTTI_X_NO_RESTART; exit 3; };"
                + " exec sleep 600");
    assertThat(launches.run(plan)).isEqualTo(3);
    assertThat(launches.messages).hasSize(1);
    assertThat(launches.messages.getFirst())
        .startsWith("the first to fail: rank 1 ended with exit code 3 after ")
        .contains(" s; it would fail again, so it is not restarted\n");
    Path file = Path.of(launches.output.out(1).getFirst());
    assertThat(file.getFileName()).hasToString("0-1");
    assertThat(file.getParent()).doesNotExist();
  }

  @ParameterizedTest
  @ValueSource(strings = {"exit 7", "kill -9 $$"})
  void ranksMayFindOutByThemselvesThatOneFailed(String end, @TempDir Path directory)
      throws InterruptedException {
    Path noticed = directory.resolve("noticed");
    String script =
        "[ $RANK = 2 ] && "
            + end
            + "; "
            + TestLaunches.awaitFile(noticed)
            + "; echo rank 2 is gone; exit $((RANK + 20))";
    LaunchPlan plan = TestPlans.lingering(TestPlans.shell(3, script), Duration.ofHours(1));
    Launcher launcher = launches.launcher(plan, _ -> create(noticed));
    assertThat(launcher.run()).isEqualTo(end.equals("exit 7") ? 7 : 137);
    assertThat(TestPlans.processesOf(plan.runId())).isEmpty();
    assertThat(launches.output.out(0)).containsExactly("rank 2 is gone");
    assertThat(launches.output.out(1)).containsExactly("rank 2 is gone");
    assertThat(launches.messages).hasSize(1);
    assertThat(launches.messages.getFirst())
        .startsWith("the first to fail: rank 2 ")
        .contains("  rank 0 ended with exit code 20 after ")
        .contains("  rank 1 ended with exit code 21 after ");
  }

  private static void create(Path file) {
    try {
      Files.createFile(file);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  @Test
  void endsRanksThatDoNotFindOutInTime(@TempDir Path directory) throws InterruptedException {
    Path trapped = directory.resolve("trapped");
    String script =
        "[ $RANK = 1 ] && { "
            + TestLaunches.awaitFile(trapped)
            + "; exit 7; }; trap 'echo asked to end; exit 0' TERM; touch "
            + trapped
            + "; sleep 600 & wait";
    LaunchPlan plan = TestPlans.lingering(TestPlans.shell(2, script), Duration.ofMillis(300));
    long start = System.nanoTime();
    assertThat(launches.run(plan)).isEqualTo(7);
    assertThat(Duration.ofNanos(System.nanoTime() - start))
        .isGreaterThanOrEqualTo(Duration.ofMillis(300));
    assertThat(launches.output.out(0)).containsExactly("asked to end");
  }

  @Test
  void startsAllAgainAsOftenAsAllowed() throws InterruptedException {
    LaunchPlan plan =
        TestPlans.of(
            2,
            2,
            Optional.empty(),
            "sh",
            "-c",
            "echo $TORCHELASTIC_RESTART_COUNT of $TORCHELASTIC_MAX_RESTARTS;"
                + " [ $RANK = 1 ] && [ $TORCHELASTIC_RESTART_COUNT -lt 2 ] && exit 9;"
                + " [ $TORCHELASTIC_RESTART_COUNT = 2 ] || exec sleep 600");
    assertThat(launches.run(plan)).isZero();
    assertThat(launches.output.out(1)).containsExactly("0 of 2", "1 of 2", "2 of 2");
    assertThat(launches.messages)
        .filteredOn(message -> message.startsWith("restarting all ranks"))
        .containsExactly(
            "restarting all ranks, restart 1 of 2", "restarting all ranks, restart 2 of 2");
  }

  @Test
  void givesUpAfterTheLastRestart() throws InterruptedException {
    LaunchPlan plan = TestPlans.of(2, 1, Optional.empty(), "sh", "-c", "exit 4");
    assertThat(launches.run(plan)).isEqualTo(4);
    assertThat(launches.messages).hasSize(3);
  }

  @Test
  void waitsForOtherNodesAsLongAsTheirRanksMayTakeToStop() throws Exception {
    Duration grace = Duration.ofSeconds(17);
    Duration linger = Duration.ofSeconds(19);
    LaunchPlan base = TestPlans.of(1, 1, Optional.empty(), "sh", "-c", "exit 3");
    LaunchPlan plan = TestPlans.lingering(TestLaunches.withGrace(base, grace), linger);
    List<Duration> waits = new CopyOnWriteArrayList<>();
    Launcher launcher =
        launches.launcher(
            plan,
            (_, method, arguments) -> {
              if (method.equals("awaitStopped")) {
                waits.add((Duration) arguments[1]);
              }
            });
    assertThat(launcher.run()).isEqualTo(3);
    // Time to report what failed, SIGTERM to the ranks, SIGKILL, SIGTERM to leftover processes, and
    // their launches.output.
    assertThat(waits).hasSize(1);
    assertThat(waits.getFirst()).isGreaterThan(linger.plus(grace.multipliedBy(2)).plusSeconds(12));
  }

  @Test
  void namesAProgramThatDoesNotExist() {
    assertRefused("no-such-program", 127, "no such program: 'no-such-program'");
    assertRefused("", 127, "no such program: ''");
  }

  @Test
  void saysWhyAFileIsNoProgram(@TempDir Path folder) throws IOException {
    Path file = Files.createFile(folder.resolve("noexec.sh"));
    assertRefused(file.toString(), 126, "'" + file + "' is not executable");
    assertRefused(folder.toString(), 126, "'" + folder + "' is a folder");
  }

  private void assertRefused(String program, int code, String message) {
    LaunchPlan plan = TestPlans.of(2, 0, Optional.empty(), program, "x");
    assertThatThrownBy(() -> launches.launcher(plan).run())
        .isInstanceOfSatisfying(
            LaunchException.class, e -> assertThat(e.exitCode()).isEqualTo(code))
        .hasMessage(message);
  }
}
