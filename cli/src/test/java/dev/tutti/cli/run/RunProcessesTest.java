package dev.tutti.cli.run;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import dev.tutti.cli.Main;
import dev.tutti.cli.process.OwnJava;
import dev.tutti.cli.process.Posix;
import java.net.ServerSocket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Order;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Tests the ranks of one node, their output and their end. */
@Order(1)
@Timeout(600)
class RunProcessesTest {
  @RegisterExtension private final TestRuns runs = new TestRuns();

  @Test
  void runsProcessesThatMeetInTheStoreOfTheLauncher() throws Exception {
    try (CommandProcess run = runs.startRanks(StoreProgram.class, "--nproc=3")) {
      assertThat(run.exitCode()).as(() -> run.lines().toString()).isZero();
      assertThat(run.lines())
          .containsExactlyInAnyOrder("[rank0] sum 3", "[rank1] sum 3", "[rank2] sum 3");
    }
  }

  @Test
  void saysThatThePortIsInUse() throws Exception {
    try (ServerSocket taken = new ServerSocket(0);
        CommandProcess run =
            runs.start("--nproc=2", "--master-port=" + taken.getLocalPort(), "--", "true")) {
      assertThat(run.exitCode()).isEqualTo(1);
      assertThat(run.lines()).hasSize(1);
      assertThat(run.lines().getFirst())
          .startsWith("tutti run: port " + taken.getLocalPort())
          .contains("is in use");
    }
  }

  @Test
  void saysWhyLogsCannotBeWritten(@TempDir Path folder) throws Exception {
    Path file = Files.writeString(folder.resolve("file"), "");
    try (CommandProcess run = runs.start("--log-dir=" + file, "--", "true")) {
      assertThat(run.exitCode()).isEqualTo(126);
      assertThat(run.lines())
          .singleElement()
          .asString()
          .startsWith("tutti run: cannot start rank 0: cannot write its logs to " + file)
          .endsWith("Not a directory");
    }
  }

  @ParameterizedTest
  @CsvSource({"TERM, 15, 143", "INT, 2, 130", "HUP, 1, 129"})
  void forwardsSignals(String name, int signal, int code) throws Exception {
    String script =
        "trap 'echo got " + name + "; exit 0' " + name + "; echo ready; sleep 600 & wait";
    try (CommandProcess run = runs.start("--nproc=2", "--grace=4m", "--", "sh", "-c", script)) {
      run.await(lines -> lines.stream().filter(line -> line.endsWith("ready")).count() == 2);
      assertThat(Posix.kill(run.pid(), signal)).isTrue();
      assertThat(run.exitCode()).isEqualTo(code);
      assertThat(run.lines())
          .contains("[rank0] got " + name, "[rank1] got " + name)
          .contains("tutti run: stopped by SIG" + name);
    }
  }

  @Test
  void endsWhenTheReaderOfItsOutputIsGone() throws Exception {
    try (CommandProcess run = runs.startIn("\"$@\" | head -n 1; exit ${PIPESTATUS[0]}", "yes")) {
      assertThat(run.exitCode()).as(() -> run.lines().toString()).isEqualTo(1);
      assertThat(run.lines())
          .containsExactlyInAnyOrder(
              "[rank0] y", "tutti run: stopped because nobody reads the output any more");
    }
  }

  @ParameterizedTest
  @ValueSource(strings = {">/dev/full", ">&-"})
  void failsWhenItsOutputCannotBeWritten(String where) throws Exception {
    try (CommandProcess run = runs.startIn("\"$@\" " + where, "echo", "x")) {
      assertThat(run.exitCode()).isEqualTo(1);
      assertThat(run.lines()).containsExactly("tutti: cannot write to standard output");
    }
  }

  @Test
  void passesOnVariablesAndOutputThatAreNoTextInItsLocale() throws Exception {
    String script = "ODD=$(printf '\\303\\274\\377') LC_ALL=C \"$@\" | od -A n -t x1";
    try (CommandProcess run = runs.startIn(script, "sh", "-c", "printf %s \"$ODD\"")) {
      assertThat(run.exitCode()).isZero();
      assertThat(run.lines()).containsExactly(" 5b 72 61 6e 6b 30 5d 20 c3 bc ff 0a");
    }
  }

  @Test
  void leavesNoRankWhenItIsKilledItself() throws Exception {
    assumeTrue(
        ProcessTree.isolated(List.of("true")).contains("--pdeathsig"),
        "setpriv with --pdeathsig is not installed, so ranks outlive a killed launcher");
    try (CommandProcess run =
        runs.start("--nproc=2", "--", "sh", "-c", "echo ready; exec sleep 600")) {
      run.await(lines -> lines.size() == 2);
      runs.awaitProcesses(2);
      Posix.kill(run.pid(), Posix.SIGKILL);
      assertThat(run.exitCode()).isEqualTo(137);
    }
    runs.awaitProcesses(0);
  }

  @Test
  void ranksThatAreStartedAgainMeetEachOther() throws Exception {
    ranksThatAreStartedAgainMeetThrough("tcp");
  }

  @Test
  @Tag("full")
  void ranksThatAreStartedAgainMeetThroughAeron() throws Exception {
    ranksThatAreStartedAgainMeetThrough("aeron");
  }

  private static void ranksThatAreStartedAgainMeetThrough(String kind) throws Exception {
    List<String> command = OwnJava.command();
    command.add(RestartedRank.class.getName());
    command.addAll(0, List.of("run", "--nproc=3", "--max-restarts=1", "--"));
    try (CommandProcess run =
        CommandProcess.startProgram(
            Map.of("TUTTI_STORE", kind), Main.class, command.toArray(String[]::new))) {
      assertThat(run.exitCode()).as(() -> run.lines().toString()).isZero();
      assertThat(run.lines())
          .contains(
              "[rank0] attempt 1 sum 6.0", "[rank1] attempt 1 sum 6.0", "[rank2] attempt 1 sum 6.0")
          .contains("tutti run: restarting all ranks, restart 1 of 1")
          .noneMatch(line -> line.contains("attempt 0 sum"));
    }
  }
}
