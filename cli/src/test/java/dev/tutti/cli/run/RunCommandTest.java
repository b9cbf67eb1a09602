package dev.tutti.cli.run;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import dev.tutti.cli.Main;
import dev.tutti.cli.process.LaunchException;
import dev.tutti.cli.process.OwnJava;
import dev.tutti.cli.process.Posix;
import dev.tutti.cli.process.Reasons;
import dev.tutti.cli.process.Terminal;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.PrintStream;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.file.AccessDeniedException;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.FileSystemLoopException;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import java.util.concurrent.locks.LockSupport;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Order;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

@Order(1)
@Timeout(600)
class RunCommandTest {
  private static final String[] SLEEPING = {"sh", "-c", "exec sleep 600"};

  /** What node 0 logs if node 1 needs more than two seconds to leave a job that does not start. */
  private static final String LATE_TO_LEAVE = "node 0 exits before node 1";

  private final ByteArrayOutputStream err = new ByteArrayOutputStream();
  private final Map<String, String> environment = new HashMap<>(System.getenv());
  private final String runId = UUID.randomUUID().toString();

  @AfterEach
  void noRankIsLeft() {
    assertThat(TestPlans.processesOf(runId)).isEmpty();
  }

  /** Parses a command line and returns the resulting plan, without running it. */
  private LaunchPlan planOf(String... arguments) {
    AtomicReference<LaunchPlan> plan = new AtomicReference<>();
    LaunchRendezvousFactory rendezvousFactory =
        (wanted, _) -> {
          plan.set(wanted);
          throw new LaunchException(77, "planned");
        };
    Terminal terminal =
        new Terminal(
            new PrintStream(new ByteArrayOutputStream(), true, UTF_8),
            new PrintStream(err, true, UTF_8),
            false,
            false);
    Main.execute(rendezvousFactory, terminal, environment, after("run", arguments));
    return plan.get();
  }

  @Test
  void takesTheNamesOfTorchrun() {
    LaunchPlan plan =
        planOf(
            "--nnodes=2",
            "--nproc_per_node=3",
            "--node_rank",
            "1",
            "--rdzv-backend=c10d",
            "--rdzv-endpoint=head:1234",
            "--rdzv-id=job",
            "--max-restarts=4",
            "--role=trainer",
            "python",
            "train.py",
            "--nproc_per_node=9",
            "--debug");
    assertThat(plan.nodes()).isEqualTo(2);
    assertThat(plan.localSize()).isEqualTo(3);
    assertThat(plan.nodeRank()).isEqualTo(1);
    assertThat(plan.masterAddress()).isEqualTo("head");
    assertThat(plan.masterPort()).isEqualTo(1234);
    assertThat(plan.runId()).isEqualTo("job");
    assertThat(plan.maxRestarts()).isEqualTo(4);
    assertThat(plan.role()).isEqualTo("trainer");
    assertThat(plan.command())
        .containsExactly("python", "train.py", "--nproc_per_node=9", "--debug");
  }

  @Test
  void hasTheDefaultsOfTorchrun() {
    LaunchPlan plan = planOf("--", "true");
    assertThat(plan.localSize()).isEqualTo(1);
    assertThat(plan.nodes()).isEqualTo(1);
    assertThat(plan.masterAddress()).isEqualTo("127.0.0.1");
    assertThat(plan.masterPort()).isZero();
    assertThat(plan.maxRestarts()).isZero();
    assertThat(plan.role()).isEqualTo("default");
    assertThat(plan.command()).containsExactly("true");
    assertThat(planOf("--nnodes=2", "true").masterPort()).isEqualTo(29500);
  }

  @Test
  void takesOptionsFromTheEnvironment() {
    environment.put("PET_NPROC_PER_NODE", "5");
    environment.put("PET_MASTER_ADDR", "head");
    LaunchPlan plan = planOf("true");
    assertThat(plan.localSize()).isEqualTo(5);
    assertThat(plan.masterAddress()).isEqualTo("head");
    assertThat(planOf("--nproc=2", "true").localSize()).isEqualTo(2);
    assertThat(planOf("--nproc_per_node=4", "true").localSize()).isEqualTo(4);
    assertThat(planOf("--master_addr", "other", "true").masterAddress()).isEqualTo("other");
    assertThat(planOf("--master_addr", "other", "true").localSize()).isEqualTo(5);
  }

  @ParameterizedTest
  @CsvSource({"1, true", "2, true", "true, true", "0, false", "false, false"})
  void takesFlagsFromTheEnvironmentLikeTorchrun(String text, boolean standalone) {
    environment.put("PET_STANDALONE", text);
    assertThat(planOf("true")).isNotNull();
    assertThat(planOf("--nnodes=2", "true") == null).isEqualTo(standalone);
    assertThat(planOf("--standalone", "--nnodes=2", "true")).isNull();
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      value = {
        "--nproc=0 | --nproc must be at least 1, not 0",
        "--nproc=many | --nproc must be a number or 'cpu', not 'many'",
        "--node-rank=1 | --node-rank must be from 0 to 0, not 1",
        "--master-port=65536 | --master-port must be from 0 to 65535, not 65536",
        "--max-restarts=-1 | --max-restarts must not be negative: -1",
        "--rdzv-backend=etcd | --rdzv-backend must be static or c10d, not 'etcd'",
        "--rdzv-endpoint=a:b | --rdzv-endpoint=a:b: the port must be a number from 1 to 65535",
        "--master-addr=a:1 | --master-addr must be a host without a port, not 'a:1'",
        "--tail=-5 | --tail must not be negative: -5",
        "--rdzv-timeout=0 | --rdzv-timeout must be longer than 0",
        "--nnodes=-1 | --nnodes must be at least 1, not -1",
        "--rdzv-id=../.. | --rdzv-id must be a name without '/'",
        "--rdzv-id=.. | --rdzv-id must be a name without '/'",
        "--rdzv-id=/etc | --rdzv-id must be a name without '/'",
        "--rdzv-endpoint=a: | --rdzv-endpoint=a:: the port must be a number from 1 to 65535",
        "--log-dir= | option '--log-dir': '' is no file or folder",
        "--linger=-1 | option '--linger': '-1': expected a time such as 30, 250ms, 5m or 1.5h"
            + " (",
        "--grace=soon | Invalid value for option '--grace'",
        "--linger=soon | Invalid value for option '--linger'",
        "--bogus | Unknown option: '--bogus'",
      })
  void saysInOneLineWhatIsWrong(String option, String message) {
    assertRefused(List.of(message), option, "--", "true");
  }

  private void assertRefused(List<String> message, String... arguments) {
    assertThat(planOf(arguments)).isNull();
    assertThat(err.toString(UTF_8).lines()).hasSize(1);
    assertThat(err.toString(UTF_8)).startsWith("tutti run: ").contains(message);
  }

  @Test
  void refusesProcessesAsRanksOfABackendOfThreads() {
    environment.put("TUTTI_BACKEND", "threaded");
    assertRefused(
        List.of("TUTTI_BACKEND=threaded", "threads of one JVM", "use gloo"),
        "--nproc=2",
        "--",
        "true");
    assertThat(planOf("--", "true")).isNotNull();
    environment.put("TUTTI_BACKEND", "threaded-mine");
    assertThat(planOf("--nproc=2", "--", "true")).isNotNull();
  }

  @Test
  void takesAddressesOfIpv6() {
    assertThat(planOf("--nnodes=2", "--rdzv-endpoint=[::1]:1234", "true"))
        .satisfies(
            plan -> {
              assertThat(plan.masterAddress()).isEqualTo("::1");
              assertThat(plan.masterPort()).isEqualTo(1234);
            });
  }

  @ParameterizedTest
  @ValueSource(strings = {"fe80::1", "node_1"})
  void takesAnyAddressOfAHost(String host) {
    assertThat(planOf("--master-addr=" + host, "true").masterAddress()).isEqualTo(host);
  }

  @Test
  void saysWhyLogsCannotBeWritten(@TempDir Path folder) throws Exception {
    Path file = Files.writeString(folder.resolve("file"), "");
    try (CommandProcess run = start("--log-dir=" + file, "--", "true")) {
      assertThat(run.exitCode()).isEqualTo(126);
      assertThat(run.lines())
          .singleElement()
          .asString()
          .startsWith("tutti run: cannot start rank 0: cannot write its logs to " + file)
          .endsWith("Not a directory");
    }
  }

  @Test
  void putsFailuresOfFilesIntoWords() {
    assertThat(Reasons.of(new AccessDeniedException("/a"))).isEqualTo("permission denied: /a");
    assertThat(Reasons.of(new FileAlreadyExistsException("/a")))
        .isEqualTo("/a exists and is not a directory");
    assertThat(Reasons.of(new NoSuchFileException("/a")))
        .isEqualTo("no such file or directory: /a");
    assertThat(Reasons.of(new FileSystemLoopException("/a")))
        .isEqualTo("FileSystemLoopException at /a");
    assertThat(Reasons.of(new IOException("disk full"))).isEqualTo("disk full");
  }

  @Test
  void needsACommand() {
    assertThat(planOf("--nproc=2")).isNull();
    assertThat(err.toString(UTF_8)).contains("Missing required parameter: 'COMMAND'");
  }

  @Test
  void runsProcessesThatMeetInTheStoreOfTheLauncher() throws Exception {
    try (CommandProcess run = startRanks(StoreProgram.class, "--nproc=3")) {
      assertThat(run.exitCode()).as(() -> run.lines().toString()).isZero();
      assertThat(run.lines())
          .containsExactlyInAnyOrder("[rank0] sum 3", "[rank1] sum 3", "[rank2] sum 3");
    }
  }

  @ParameterizedTest
  @CsvSource({"TERM, 15, 143", "INT, 2, 130", "HUP, 1, 129"})
  void forwardsSignals(String name, int signal, int code) throws Exception {
    String script =
        "trap 'echo got " + name + "; exit 0' " + name + "; echo ready; sleep 600 & wait";
    try (CommandProcess run = start("--nproc=2", "--grace=4m", "--", "sh", "-c", script)) {
      run.await(lines -> lines.stream().filter(line -> line.endsWith("ready")).count() == 2);
      assertThat(Posix.kill(run.pid(), signal)).isTrue();
      assertThat(run.exitCode()).isEqualTo(code);
      assertThat(run.lines())
          .contains("[rank0] got " + name, "[rank1] got " + name)
          .contains("tutti run: stopped by SIG" + name);
    }
  }

  /** Starts {@code tutti run} as the program of the {@code "$@"} in a script. */
  private CommandProcess startIn(String script, String... command) throws IOException {
    List<String> arguments = new ArrayList<>(List.of("run", "--rdzv-id=" + runId, "--"));
    arguments.addAll(List.of(command));
    return CommandProcess.startInside(List.of("bash", "-c", script, "bash"), Map.of(), arguments);
  }

  @Test
  void endsWhenTheReaderOfItsOutputIsGone() throws Exception {
    try (CommandProcess run = startIn("\"$@\" | head -n 1; exit ${PIPESTATUS[0]}", "yes")) {
      assertThat(run.exitCode()).as(() -> run.lines().toString()).isEqualTo(1);
      assertThat(run.lines())
          .containsExactlyInAnyOrder(
              "[rank0] y", "tutti run: stopped because nobody reads the output any more");
    }
  }

  @ParameterizedTest
  @ValueSource(strings = {">/dev/full", ">&-"})
  void failsWhenItsOutputCannotBeWritten(String where) throws Exception {
    try (CommandProcess run = startIn("\"$@\" " + where, "echo", "x")) {
      assertThat(run.exitCode()).isEqualTo(1);
      assertThat(run.lines()).containsExactly("tutti: cannot write to standard output");
    }
  }

  @Test
  void passesOnVariablesAndOutputThatAreNoTextInItsLocale() throws Exception {
    String script = "ODD=$(printf '\\303\\274\\377') LC_ALL=C \"$@\" | od -A n -t x1";
    try (CommandProcess run = startIn(script, "sh", "-c", "printf %s \"$ODD\"")) {
      assertThat(run.exitCode()).isZero();
      assertThat(run.lines()).containsExactly(" 5b 72 61 6e 6b 30 5d 20 c3 bc ff 0a");
    }
  }

  /** Kills a rank that has printed its process id. */
  private static void kill(CommandProcess run, int rank) {
    String before = "[rank" + rank + "] pid ";
    String line =
        run.lines().stream().filter(each -> each.startsWith(before)).findFirst().orElseThrow();
    Posix.kill(Long.parseLong(line.substring(before.length())), Posix.SIGKILL);
  }

  @Test
  void reportsARankThatIsKilled() throws Exception {
    String script = "echo pid $$; exec sleep 600";
    try (CommandProcess run = start("--nproc=4", "--linger=0", "--", "sh", "-c", script)) {
      run.await(lines -> lines.size() == 4);
      kill(run, 2);
      assertThat(run.exitCode()).isEqualTo(137);
      assertThat(run.lines())
          .anyMatch(
              line ->
                  line.startsWith(
                      "tutti run: the first to fail: rank 2 was killed by SIGKILL (exit code"
                          + " 137)"));
    }
  }

  @Test
  void ranksSayWhichOneWasKilled() throws Exception {
    SlowProcesses.repeat(this::assertThatRanksSayWhichOneWasKilled);
  }

  private void assertThatRanksSayWhichOneWasKilled() throws Exception {
    try (CommandProcess run = startRanks(EndlessRank.class, "--nproc=3", "--linger=4m")) {
      run.await(lines -> lines.stream().filter(line -> line.contains("] pid ")).count() == 3);
      kill(run, 1);
      assertThat(run.exitCode()).isEqualTo(137);
      for (int survivor : List.of(0, 2)) {
        String prefix = "[rank" + survivor + "] ";
        assertThat(run.lines())
            .anyMatch(
                line ->
                    line.startsWith(prefix + "Exception in thread \"main\" ")
                        && line.contains("PeerFailedException")
                        && line.contains("first failing rank 1"))
            .anyMatch(line -> line.startsWith(prefix + "\tat ") && line.contains("EndlessRank"))
            .anyMatch(
                line -> line.startsWith("  rank " + survivor + " ended with exit code 1 after "));
      }
      assertThat(run.lines())
          .anyMatch(line -> line.startsWith("tutti run: the first to fail: rank 1 was killed by"));
    }
  }

  @Test
  void namesTheRankThatTheOthersBlame() throws Exception {
    // Rank 0 says the latter where the store does not answer for a second.
    SlowProcesses.repeat(this::assertThatTheBlamedRankIsNamed, "rank 1 is gone, as detected by");
  }

  private void assertThatTheBlamedRankIsNamed() throws Exception {
    try (CommandProcess run = startRanks(LeavingRank.class, "--nproc=2", "--linger=1s")) {
      assertThat(run.exitCode()).isEqualTo(1);
      List<String> report =
          run.lines().stream().dropWhile(line -> !line.contains("the first to fail")).toList();
      assertThat(report.getFirst())
          .startsWith("tutti run: the first to fail: rank 0 ended with exit code 1 after ");
      assertThat(report)
          .as(() -> run.lines().toString())
          .containsSubsequence("  last lines of rank 1:", "    rank 1 stops: no more data")
          .anyMatch(
              line ->
                  line.startsWith("  but the ranks blame rank 1: rank 1 closed its group, while"))
          .anyMatch(line -> line.startsWith("  rank 1 was stopped by SIGTERM"));
    }
  }

  @Test
  void namesTheRankWhoseCallIsTheOddOne() throws Exception {
    SlowProcesses.repeat(() -> assertNamesTheOddOne(0));
  }

  @Tag("full")
  @ParameterizedTest
  @ValueSource(ints = {1, 2})
  void namesTheRankWhoseCallIsTheOddOne(int odd) throws Exception {
    SlowProcesses.repeat(() -> assertNamesTheOddOne(odd));
  }

  private void assertNamesTheOddOne(int odd) throws Exception {
    try (CommandProcess run =
        startRanks(OddRank.class, List.of("" + odd), "--nproc=3", "--linger=4m")) {
      assertThat(run.exitCode()).isEqualTo(1);
      for (int rank = 0; rank < 3; rank++) {
        String prefix = "[rank" + rank + "] Exception in thread \"main\" ";
        assertThat(run.lines())
            .anyMatch(
                line -> line.startsWith(prefix) && line.contains("first failing rank " + odd));
      }
      assertThat(run.lines())
          .anyMatch(
              line ->
                  line.startsWith("tutti run: the first to fail: rank " + odd + " ")
                      || line.startsWith("  but the ranks blame rank " + odd + ": "));
    }
  }

  @Test
  void saysWhatRanksCalledOfWhichNoneIsTheOddOne() throws Exception {
    SlowProcesses.repeat(this::assertThatTheReportSaysWhatBothCalled);
  }

  private void assertThatTheReportSaysWhatBothCalled() throws Exception {
    try (CommandProcess run = startRanks(OddRank.class, List.of("1"), "--nproc=2", "--linger=4m")) {
      assertThat(run.exitCode()).isEqualTo(1);
      assertThat(run.lines())
          .noneMatch(line -> line.contains("first failing rank"))
          .anyMatch(
              line ->
                  line.startsWith("  the ranks do not blame a single rank: rank ")
                      && line.contains("rank 0 called allReduce #2 float32[3]")
                      && line.contains("rank 1 called allReduce #2 float32[2]"));
    }
  }

  @Test
  void leavesNoRankWhenItIsKilledItself() throws Exception {
    assumeTrue(
        ProcessTree.isolated(List.of("true")).contains("--pdeathsig"),
        "setpriv with --pdeathsig is not installed, so ranks outlive a killed launcher");
    try (CommandProcess run = start("--nproc=2", "--", "sh", "-c", "echo ready; exec sleep 600")) {
      run.await(lines -> lines.size() == 2);
      awaitProcesses(2);
      Posix.kill(run.pid(), Posix.SIGKILL);
      assertThat(run.exitCode()).isEqualTo(137);
    }
    awaitProcesses(0);
  }

  /**
   * Waits until the given number of ranks run; a rank that execs another program shows no
   * environment for a moment.
   */
  private void awaitProcesses(int count) {
    long deadline = System.nanoTime() + Duration.ofMinutes(4).toNanos();
    while (TestPlans.processesOf(runId).size() != count && System.nanoTime() < deadline) {
      LockSupport.parkNanos(1_000_000);
    }
    assertThat(TestPlans.processesOf(runId)).hasSize(count);
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

  @Test
  void saysThatThePortIsInUse() throws Exception {
    try (ServerSocket taken = new ServerSocket(0);
        CommandProcess run =
            start("--nproc=2", "--master-port=" + taken.getLocalPort(), "--", "true")) {
      assertThat(run.exitCode()).isEqualTo(1);
      assertThat(run.lines()).hasSize(1);
      assertThat(run.lines().getFirst())
          .startsWith("tutti run: port " + taken.getLocalPort())
          .contains("is in use");
    }
  }

  @Test
  void runsTwoNodes() throws Exception {
    String warning =
        "tutti run: warning: 127.0.0.1 is a loopback address, which can be reached only"
            + " from the host of node 0; if the nodes run on several hosts, give all of them"
            + " --master-addr=HOST of node 0";
    String script = "echo $RANK of $WORLD_SIZE at $MASTER_ADDR:$MASTER_PORT";
    try (CommandProcess zero =
        start("--nnodes=2", "--nproc=2", "--master-port=0", "sh", "-c", script)) {
      String port = portOf(zero);
      try (CommandProcess one =
          start("--nnodes=2", "--node-rank=1", "--master-port=" + port, "sh", "-c", script)) {
        assertThat(zero.exitCode()).as(() -> zero.lines().toString()).isZero();
        assertThat(one.exitCode()).as(() -> one.lines().toString()).isZero();
        String place = " of 3 at 127.0.0.1:" + port;
        assertThat(withoutLog(zero.lines()))
            .contains(warning, "[rank0] 0" + place, "[rank1] 1" + place)
            .filteredOn(line -> !line.contains("waiting up to 10 min"))
            .hasSize(4);
        assertThat(zero.lines()).anyMatch(line -> line.contains("TUTTI_TOKEN is not set"));
        assertThat(one.lines())
            .filteredOn(line -> !line.contains("waiting up to 10 min"))
            .containsExactly(warning, "[rank2] 2" + place);
      }
    }
  }

  /** Returns the port on which node 0 reports that its store listens. */
  private static String portOf(CommandProcess zero) throws InterruptedException {
    String listens = "tutti run: the store listens on port ";
    return zero.awaitLine(line -> line.startsWith(listens))
        .replaceAll("\\D+ port (\\d+); .*", "$1");
  }

  /** Asserts that all nodes end for the same reason, which each reports once. */
  private static void assertEndWith(String message, CommandProcess... nodes) throws Exception {
    for (CommandProcess node : nodes) {
      assertThat(node.exitCode()).as(() -> node.lines().toString()).isEqualTo(1);
      assertThat(node.lines())
          .containsOnlyOnce(message)
          .noneMatch(line -> line.contains("tutti-run"))
          .noneMatch(line -> line.contains("exits before"));
    }
  }

  @ParameterizedTest
  @CsvSource({"2, 3", "3, 2"})
  void nodesStartedForDifferentNumbersOfNodesAreToldSo(int ofZero, int ofOne) throws Exception {
    SlowProcesses.repeat(() -> assertThatNodesAreToldSo(ofZero, ofOne), LATE_TO_LEAVE);
  }

  private void assertThatNodesAreToldSo(int ofZero, int ofOne) throws Exception {
    String message =
        "tutti run: node 0 was started with --nnodes=%d, node 1 with --nnodes=%d; give all nodes the same value"
            .formatted(ofZero, ofOne);
    try (CommandProcess zero = start(SLEEPING, "--nnodes=" + ofZero, "--master-port=0")) {
      String port = "--master-port=" + portOf(zero);
      try (CommandProcess one = start(SLEEPING, "--nnodes=" + ofOne, "--node-rank=1", port)) {
        assertEndWith(message, one, zero);
      }
    }
  }

  @Tag("full")
  @Test
  void aNodeThatGivesUpEndsTheOthers() throws Exception {
    AtomicInteger seconds = new AtomicInteger(3);
    SlowProcesses.repeat(
        () -> assertThatANodeEndsTheOthers(seconds.getAndUpdate(before -> 3 * before)),
        LATE_TO_LEAVE,
        "the node did not even connect");
  }

  /**
   * Starts two of three nodes.
   *
   * @param seconds how long node 1 tries to connect, and then waits for node 2
   */
  private void assertThatANodeEndsTheOthers(int seconds) throws Exception {
    try (CommandProcess zero = start(SLEEPING, "--nnodes=3", "--master-port=0")) {
      String port = portOf(zero);
      String message =
          "tutti run: node 2 of 3 did not join at 127.0.0.1:"
              + port
              + " within "
              + seconds
              + " s (--rdzv-timeout of node 1); check that each was started with the same"
              + " --nnodes and its own --node-rank, and can reach that address";
      // Others must already be waiting, or node 1 finds that they do not come.
      zero.awaitLine(line -> line.contains("for nodes 1, 2 of 3"));
      try (CommandProcess one =
          start(
              SLEEPING,
              "--nnodes=3",
              "--node-rank=1",
              "--master-port=" + port,
              "--rdzv-timeout=" + seconds + "s")) {
        assertThat(one.exitCode()).isEqualTo(1);
        assertThat(one.lines())
            .as("the node did not even connect")
            .anyMatch(line -> line.contains("did not join"));
        assertEndWith(message, one, zero);
      }
    }
  }

  @Tag("full")
  @Test
  void saysWhyItEndsBeforeItWaitsForOthersToLeave() throws Exception {
    try (CommandProcess zero = start(SLEEPING, "--nnodes=3", "--master-port=0")) {
      String port = "--master-port=" + portOf(zero);
      // Node 1 says only once who is missing, and that must not be node 0.
      zero.awaitLine(line -> line.contains("for nodes 1, 2 of 3"));
      try (CommandProcess one = start(SLEEPING, "--nnodes=3", "--node-rank=1", port)) {
        one.awaitLine(line -> line.contains("for node 2 of 3"));
        Posix.kill(one.pid(), Posix.SIGKILL);
        assertThat(one.exitCode()).isEqualTo(137);
      }
      String[] none = {"no-such-program"};
      try (CommandProcess two = start(none, "--nnodes=3", "--node-rank=2", port)) {
        assertThat(two.exitCode()).isEqualTo(127);
        assertThat(two.lines()).endsWith("tutti run: no such program: no-such-program");
      }
      assertThat(zero.exitCode()).isEqualTo(127);
      List<String> lines = zero.lines();
      String reason = "tutti run: node 2: no such program: no-such-program";
      assertThat(lines).containsOnlyOnce(reason);
      assertThat(lines.subList(lines.indexOf(reason), lines.size()))
          .anyMatch(line -> line.contains("node 0 exits before node 1"));
    }
  }

  private CommandProcess start(String[] command, String... options) throws IOException {
    List<String> all = new ArrayList<>(List.of(options));
    all.addAll(List.of(command));
    return start(all.toArray(String[]::new));
  }

  @Test
  void warnsOfALoopbackAddressOnlyWhereThereAreSeveralNodes() {
    assertThat(planOf("--nnodes=2", "--master-addr=localhost", "true")).isNotNull();
    assertThat(err.toString(UTF_8)).contains("warning: localhost is a loopback address");
    err.reset();
    assertThat(planOf("--nnodes=2", "--master-addr=192.0.2.1", "true")).isNotNull();
    assertThat(planOf("--nnodes=2", "--master-addr=a.invalid", "true")).isNotNull();
    assertThat(planOf("--nproc=2", "true")).isNotNull();
    assertThat(err.toString(UTF_8)).doesNotContain("loopback");
  }

  @Test
  void saysThatItWaitsForNodeZero() throws Exception {
    try (Socket bound = new Socket()) {
      // No other process can take this port, and nobody listens on it.
      bound.bind(new InetSocketAddress(InetAddress.ofLiteral("127.0.0.1"), 0));
      AtomicInteger seconds = new AtomicInteger(4);
      SlowProcesses.repeat(
          () ->
              assertThatANodeWaitsAt(
                  bound.getLocalPort(), seconds.getAndUpdate(before -> 3 * before)),
          "the wait ended before it was announced");
    }
  }

  private void assertThatANodeWaitsAt(int port, int seconds) throws Exception {
    String master = "--master-port=" + port;
    String timeout = "--rdzv-timeout=" + seconds + "s";
    try (CommandProcess run = start("--nnodes=2", "--node-rank=1", master, timeout, "true")) {
      assertThat(run.exitCode()).isEqualTo(1);
      assertThat(run.lines())
          .as("the wait ended before it was announced")
          .anyMatch(line -> line.contains("waiting up to"));
      assertThat(run.lines())
          .as("what it says")
          .containsOnlyOnce(
              "tutti run: waiting up to "
                  + seconds
                  + " s (--rdzv-timeout) for node 0 to serve the store at 127.0.0.1:"
                  + port);
    }
  }

  /** Removes what the store server logs. */
  private static List<String> withoutLog(List<String> lines) {
    return lines.stream()
        .filter(line -> line.startsWith("tutti run: ") || line.startsWith("[rank"))
        .toList();
  }

  /** Starts ranks whose program is a class of these tests. */
  private CommandProcess startRanks(Class<?> program, String... options) throws IOException {
    return startRanks(program, List.of(), options);
  }

  private CommandProcess startRanks(Class<?> program, List<String> arguments, String... options)
      throws IOException {
    List<String> command = OwnJava.command();
    command.add(program.getName());
    command.addFirst("--");
    command.addAll(arguments);
    return start(command.toArray(String[]::new), options);
  }

  private CommandProcess start(String... arguments) throws IOException {
    return CommandProcess.start(after("run", after("--rdzv-id=" + runId, arguments)));
  }

  private static String[] after(String first, String... others) {
    return Stream.concat(Stream.of(first), Stream.of(others)).toArray(String[]::new);
  }

  @Test
  void startsJavaFromACacheThatItsFirstRunWrote(@TempDir Path folder) throws IOException {
    Path cache = folder.resolve("app.aot");
    assertThat(planOf("--aot", cache.toString(), "--", "java", "-cp", "a.jar", "A"))
        .satisfies(
            plan -> {
              assertThat(plan.command(0).get(1)).startsWith("-XX:AOTCacheOutput=" + cache + ".");
              assertThat(plan.command(1)).containsExactly("java", "-cp", "a.jar", "A");
            });
    Files.createFile(cache);
    LaunchPlan later = planOf("--aot", cache.toString(), "--", "/x/java", "-cp", "a.jar", "A");
    for (int local = 0; local < 2; local++) {
      assertThat(later.command(local))
          .containsExactly("/x/java", "-XX:AOTCache=" + cache, "-cp", "a.jar", "A");
    }
  }

  @Test
  void refusesACacheForOtherProgramsAndInNoFolder(@TempDir Path folder) {
    planOf("--aot", folder.resolve("a").toString(), "python3", "train.py");
    assertThat(err.toString(UTF_8))
        .contains("--aot works only for commands that start with java, not with python3");
    planOf("--aot", folder.resolve("b/c").toString(), "java", "A");
    assertThat(err.toString(UTF_8)).contains(": no such folder");
    planOf("--aot", folder.toString(), "java", "A");
    assertThat(err.toString(UTF_8))
        .contains("--aot must be a file, but " + folder + " is a folder");
  }
}
