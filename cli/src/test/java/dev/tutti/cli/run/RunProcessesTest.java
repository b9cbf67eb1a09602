package dev.tutti.cli.run;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.InstanceOfAssertFactories.STRING;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import dev.tutti.cli.Main;
import dev.tutti.cli.process.Affinity;
import dev.tutti.cli.process.Counts;
import dev.tutti.cli.process.OwnJava;
import dev.tutti.cli.process.Posix;
import dev.tutti.cli.rank.ProcessTree;
import dev.tutti.cli.rank.Program;
import dev.tutti.runtime.launch.JvmThreads;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.ServerSocket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.ArrayList;
import java.util.BitSet;
import java.util.List;
import java.util.Map;
import java.util.StringJoiner;
import java.util.stream.Stream;
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
  void givesJavaTheFlagsOfManyRanksAndSaysSo() throws Exception {
    int cores = Runtime.getRuntime().availableProcessors();
    int ranks = JvmThreads.leastCrowd(cores);
    String java = Path.of(System.getProperty("java.home"), "bin", "java").toString();
    try (CommandProcess run =
        runs.start("--nproc=" + ranks, "--", java, "-XX:+PrintCommandLineFlags", "--version")) {
      assertThat(run.exitCode()).as(() -> run.lines().toString()).isZero();
      assertThat(run.lines())
          .filteredOn(line -> line.contains("-XX:CICompilerCount=2 "))
          .hasSize(ranks)
          .allMatch(line -> line.contains(" -XX:+UseSerialGC"));
      assertThat(run.lines())
          .filteredOn(line -> line.startsWith("tutti run: "))
          .singleElement(STRING)
          .startsWith("tutti run: " + ranks + " ranks on " + Counts.of(cores, "core") + ": ")
          .endsWith(
              "java gets -XX:+UseSerialGC -XX:CICompilerCount=2; --jvm-flags=none omits that");
    }
  }

  /** Returns numbers as Linux lists them, such as 0-3,8. */
  private static String ranges(BitSet numbers) {
    StringJoiner ranges = new StringJoiner(",");
    for (int first = numbers.nextSetBit(0); first >= 0; ) {
      int end = numbers.nextClearBit(first);
      ranges.add(end == first + 1 ? "" + first : first + "-" + (end - 1));
      first = numbers.nextSetBit(end);
    }
    return ranges.toString();
  }

  @Test
  void bindsAllThreadsOfARankAndSaysHowManyCoresThereAre() throws Exception {
    BitSet all = Affinity.own();
    int ranks = Math.max(2, all.cardinality());
    int cores = Runtime.getRuntime().availableProcessors();
    String script = "echo $(sed -n 's/^Cpus_allowed_list://p' /proc/self/status) $TUTTI_HOST_CORES";
    Binding binding = Binding.choose("core", ranks, all);
    List<String> expected = new ArrayList<>();
    for (int rank = 0; rank < ranks; rank++) {
      expected.add("[rank" + rank + "] " + ranges(binding.of(rank)) + " " + cores);
    }
    try (CommandProcess run =
        runs.start("--nproc=" + ranks, "--bind=core", "--", "sh", "-c", script)) {
      assertThat(run.exitCode()).as(() -> run.lines().toString()).isZero();
      assertThat(run.lines()).containsExactlyInAnyOrderElementsOf(expected);
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

  /** Leaves neither a rank that is a child of a shell, nor the process that watches over it. */
  @Test
  void leavesNoRankBehindAShellWhenItIsKilledItself() throws Exception {
    assumeTrue(
        ProcessTree.inOwnSession(List.of("true")).isPresent(),
        "setsid is not installed, so ranks behind a shell outlive a killed launcher");
    try (CommandProcess run =
        runs.start("--nproc=2", "--", "sh", "-c", "sleep 600 & echo ready; wait; echo over")) {
      run.await(lines -> lines.size() == 2);
      runs.awaitProcesses(4);
      Posix.kill(run.pid(), Posix.SIGKILL);
      assertThat(run.exitCode()).isEqualTo(137);
    }
    runs.awaitProcesses(0);
  }

  /** Runs as the first process of a container, which gets the processes that others leave. */
  @Test
  void reapsOrphansAsTheFirstProcess() throws Exception {
    List<String> contain = List.of("unshare", "-fp", "--mount-proc");
    assumeTrue(
        (int) Files.getAttribute(Path.of("/proc/self"), "unix:uid") == 0
            && Program.find("unshare", System.getenv()).isPresent(),
        "only root with unshare can start a first process");
    String script =
        """
        for i in $(seq 20); do (sh -c 'exit 3' & setsid sh -c 'exit 3' &); done
        for i in $(seq 600); do
          left=$(grep -s ') Z 1 ' /proc/[0-9]*/stat | wc -l)
          [ "$left" = 0 ] && break
          sleep 0.1
        done
        echo "zombies $left"
        """;
    List<String> arguments = List.of("run", "--nproc=1", "--", "bash", "-c", script);
    try (CommandProcess run = CommandProcess.startInside(contain, Map.of(), arguments)) {
      assertThat(run.exitCode()).as(() -> run.lines().toString()).isZero();
      assertThat(run.lines()).containsExactly("[rank0] zombies 0");
    }
  }

  /** Shows text without a line end while the rank waits for a file that comes only then. */
  @Test
  void showsTextWithoutALineEnd(@TempDir Path folder) throws Exception {
    Path go = folder.resolve("go");
    String script = "printf 'continue? '; until [ -e " + go + " ]; do sleep 0.05; done; echo yes";
    String launch =
        "PET_LOG_DIR=" + folder + " \"$@\" | { head -c 18; echo; touch " + go + "; cat; }";
    try (CommandProcess run = runs.startIn(launch, "sh", "-c", script)) {
      assertThat(run.exitCode()).isZero();
      assertThat(run.lines()).containsExactly("[rank0] continue? ", "yes");
    }
    try (Stream<Path> all = Files.walk(folder)) {
      List<Path> logs = all.filter(file -> !file.equals(go)).toList();
      assertThat(logs.stream().filter(Files::isRegularFile))
          .allMatch(file -> modeOf(file).equals("rw-------"))
          .anySatisfy(file -> assertThat(file).hasContent("continue? yes"));
      assertThat(logs.stream().skip(1).filter(Files::isDirectory))
          .hasSize(3)
          .allMatch(each -> modeOf(each).equals("rwx------"));
    }
  }

  private static String modeOf(Path file) {
    try {
      return PosixFilePermissions.toString(Files.getPosixFilePermissions(file));
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
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

  @Test
  void ranksThatAreStartedAgainMeetInAFile(@TempDir Path directory) throws Exception {
    String url = directory.resolve("store").toUri() + "?rank=$RANK&world_size=$WORLD_SIZE";
    ranksThatAreStartedAgainMeet(
        Map.of(), List.of("sh", "-c", "TUTTI_INIT_METHOD=\"" + url + "\" exec \"$@\"", "sh"));
    assertThat(directory).isEmptyDirectory();
  }

  private static void ranksThatAreStartedAgainMeetThrough(String kind) throws Exception {
    ranksThatAreStartedAgainMeet(Map.of("TUTTI_STORE", kind), List.of());
  }

  /** Starts ranks by a command, whose last arguments are the rank's own command. */
  private static void ranksThatAreStartedAgainMeet(Map<String, String> environment, List<String> by)
      throws Exception {
    List<String> command = OwnJava.command();
    command.add(RestartedRank.class.getName());
    command.addAll(0, by);
    command.addAll(0, List.of("run", "--nproc=3", "--max-restarts=1", "--"));
    try (CommandProcess run =
        CommandProcess.startProgram(environment, Main.class, command.toArray(String[]::new))) {
      assertThat(run.exitCode()).as(() -> run.lines().toString()).isZero();
      assertThat(run.lines())
          .contains(
              "[rank0] attempt 1 sum 6.0", "[rank1] attempt 1 sum 6.0", "[rank2] attempt 1 sum 6.0")
          .contains("tutti run: restarting all ranks, restart 1 of 1")
          .noneMatch(line -> line.contains("attempt 0 sum"));
    }
  }
}
