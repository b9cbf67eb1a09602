package dev.tutti.cli.status;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.tutti.GroupOptions;
import dev.tutti.ProcessGroup;
import dev.tutti.Settings;
import dev.tutti.cli.Main;
import dev.tutti.cli.TestTerminal;
import dev.tutti.cli.process.Converters;
import dev.tutti.cli.process.LaunchException;
import dev.tutti.cli.process.Terminal;
import dev.tutti.cli.run.CommandProcess;
import dev.tutti.cli.status.LocalJobs.LocalJob;
import dev.tutti.cli.trace.StalledRank;
import dev.tutti.fake.ThreadedProvider;
import dev.tutti.store.JobToken;
import dev.tutti.store.PrefixStore;
import dev.tutti.store.tcp.TcpStore;
import dev.tutti.store.tcp.TcpStoreServer;
import java.io.ByteArrayOutputStream;
import java.io.PrintStream;
import java.net.CookieManager;
import java.net.InetAddress;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.SortedMap;
import java.util.TreeMap;
import java.util.concurrent.Callable;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Order;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;
import picocli.CommandLine;

/** Tests what {@code tutti status} reports about jobs whose ranks are processes. */
@Timeout(600)
@Order(1)
class StatusCommandTest {
  @TempDir Path folder;

  private final List<CommandProcess> ranks = new ArrayList<>();
  private TcpStoreServer server;
  private int exitCode;
  private String said;
  private String verdict;

  @BeforeEach
  void serve() throws Exception {
    server = new TcpStoreServer(InetAddress.getLoopbackAddress(), 0);
  }

  @AfterEach
  void end() {
    ranks.forEach(CommandProcess::close);
    server.close();
  }

  private void start(int size, Class<?> program) throws Exception {
    start(size, program, "RANK", Map.of("WORLD_SIZE", "" + size, "MASTER_ADDR", "127.0.0.1"));
  }

  private void start(int size, Class<?> program, String rankName, Map<String, String> launcher)
      throws Exception {
    Map<String, String> environment = new HashMap<>(launcher);
    environment.put("MASTER_PORT", "" + server.port());
    environment.put("TORCHELASTIC_USE_AGENT_STORE", "1");
    environment.put("TUTTI_BACKEND", "gloo");
    environment.put("TUTTI_SLOW", "0"); // a rank that asks what keeps it leaves keys
    for (int rank = 0; rank < size; rank++) {
      environment.put(rankName, "" + rank);
      ranks.add(CommandProcess.startProgram(environment, program));
    }
    for (CommandProcess rank : ranks) {
      rank.await(lines -> lines.contains("READY"));
    }
  }

  /**
   * Requests the status once. The store and the ranks have a minute to answer; if the arguments
   * give them less, a busy machine may make the command fail.
   */
  private List<String[]> status(String... more) {
    TestTerminal terminal = new TestTerminal();
    List<String> arguments = new ArrayList<>(List.of("status", "--at", url()));
    arguments.addAll(List.of(more));
    boolean isPatient = !arguments.contains("--timeout");
    if (isPatient) {
      arguments.addAll(List.of("--timeout", "60s"));
    }
    exitCode = terminal.tutti(Map.of(), arguments.toArray(String[]::new));
    said = terminal.err();
    if (isPatient) {
      assertThat(said).isEmpty();
    }
    List<String> lines = terminal.out().lines().toList();
    verdict = lines.getFirst();
    assertThat(lines.get(1)).isEmpty();
    return lines.stream().skip(2).map(line -> line.strip().split(" {2,}")).toList();
  }

  /** Asserts that the exit code is the one of the verdict, which depends on the machine's speed. */
  private void assertExitCode() {
    assertThat(exitCode)
        .as(verdict)
        .isEqualTo(verdict.equals("healthy") ? 0 : verdict.contains(" is hung: ") ? 4 : 3);
  }

  private String url() {
    return "tcp://127.0.0.1:" + server.port();
  }

  @Test
  void itNamesWhoIsMissingAndWhereThatRankIs() throws Exception {
    start(2, StalledRank.class);
    List<String[]> rows = status();
    assertThat(rows).hasSize(3);
    assertThat(rows.get(0))
        .startsWith("rank", "process", "group", "operation", "for", "waits for", "last", "lag");
    assertThat(rows.get(1)[0]).isEqualTo("0");
    assertThat(rows.get(1)[1]).endsWith("/" + ranks.get(0).pid());
    assertThat(rows.get(1)[2]).isEqualTo("0");
    assertThat(rows.get(1)[3]).isEqualTo("allReduce #3");
    assertThat(rows.get(1)[4]).matches("\\d+(\\.\\d)? m?s");
    assertThat(rows.get(1)[5]).isEqualTo("rank 1");
    assertThat(rows.get(2)[1]).endsWith("/" + ranks.get(1).pid());
    assertThat(rows.get(2)[3]).isEqualTo("none since #2");
    assertThat(rows.get(2)[5]).isEqualTo("-");
    assertThat(rows.get(2)[10]).startsWith("main: ").contains("StalledRank.main");
    assertExitCode();
  }

  @Test
  void ranksOfMpirunAreFoundByTheirProcesses() throws Exception {
    Map<String, String> mpi =
        Map.of("OMPI_COMM_WORLD_SIZE", "2", "OMPI_COMM_WORLD_LOCAL_SIZE", "2");
    start(2, StalledRank.class, "OMPI_COMM_WORLD_RANK", mpi);
    TestTerminal terminal = new TestTerminal();
    StatusCommand command =
        new StatusCommand(
            terminal.terminal(),
            Settings.ofEnvironment(Map.of()),
            () -> {
              SortedMap<String, LocalJob> all = LocalJobs.find();
              all.keySet().retainAll(List.of(url()));
              return all;
            });
    CommandLine line = new CommandLine(command);
    Converters.register(line);
    line.parseArgs("--timeout", "60s");
    assertThat(command.call()).isIn(0, 3, 4);
    assertThat(terminal.out()).contains("/" + ranks.get(0).pid(), "/" + ranks.get(1).pid());
  }

  @Test
  void itSaysHowOftenRanksCameLastInTheLastSteps() throws Exception {
    start(3, SteppingRank.class);
    List<String[]> rows = status();
    assertThat(rows).hasSize(4);
    int times = 0;
    for (String[] row : rows.subList(1, 4)) {
      assertThat(row[6]).endsWith("/" + SteppingRank.STEPS);
      times += Integer.parseInt(row[6].substring(0, row[6].indexOf('/')));
      assertThat(row[7]).matches("\\d+\\.\\d ms");
    }
    assertThat(times).isLessThanOrEqualTo(SteppingRank.STEPS);
    assertExitCode();
  }

  @Test
  void itSaysThatARankDoesNotAnswerAndThatTheOthersLeft() throws Exception {
    start(3, SteppingRank.class);
    ranks.get(1).close();
    for (int survivor : new int[] {0, 2}) {
      assertThat(ranks.get(survivor).exitCode()).isEqualTo(1);
    }
    List<String[]> rows = status("--timeout", "5s");
    assertThat(said).isEmpty();
    assertThat(rows.stream().map(row -> row[0] + " " + row[1]))
        .containsExactly("rank process", "0 left", "1 does not answer", "2 left");
    assertThat(verdict).startsWith("rank 1 is gone, as detected by ");
    assertThat(exitCode).isEqualTo(4);
  }

  @Test
  void itLeavesOnlyTheEntryInTheLogBehind() throws Exception {
    start(2, StalledRank.class);
    try (TcpStore store = new TcpStore("127.0.0.1", server.port())) {
      List<String> before = store.listKeys();
      status();
      assertThat(store.listKeys())
          .containsAll(before)
          .filteredOn(key -> !before.contains(key))
          .containsExactly("tutti/0/event/1");
    }
  }

  /** Joins as one of two ranks whose keys have a prefix, and stays until the latch opens. */
  private Callable<Void> joinBelow(
      String prefix, int rank, CountDownLatch joined, CountDownLatch end) {
    return () -> {
      try (TcpStore store = new TcpStore("127.0.0.1", server.port());
          ProcessGroup group =
              ProcessGroup.init(
                  GroupOptions.DEFAULT
                      .withStore(new PrefixStore(prefix, store))
                      .withRank(rank)
                      .withSize(2)
                      .withProvider(new ThreadedProvider()))) {
        group.barrier();
        joined.countDown();
        assertThat(end.await(10, TimeUnit.MINUTES)).isTrue();
      }
      return null;
    };
  }

  /** Runs a check while two ranks have joined whose keys have the prefix 3.0. */
  private void whileTwoHaveJoined(Runnable check) throws Exception {
    CountDownLatch joined = new CountDownLatch(2);
    CountDownLatch end = new CountDownLatch(1);
    try (ExecutorService threads = Executors.newFixedThreadPool(2)) {
      List<Future<Void>> both = new ArrayList<>();
      for (int rank = 0; rank < 2; rank++) {
        both.add(threads.submit(joinBelow("3.0", rank, joined, end)));
      }
      try {
        assertThat(joined.await(4, TimeUnit.MINUTES)).isTrue();
        check.run();
      } finally {
        end.countDown();
      }
      for (Future<Void> each : both) {
        each.get(4, TimeUnit.MINUTES);
      }
    }
  }

  @Test
  void aJobWhoseKeysHaveAPrefixIsFound() throws Exception {
    whileTwoHaveJoined(
        () -> {
          List<String[]> rows = status("--prefix", "3.0");
          assertThat(rows).hasSize(3);
          assertThat(rows.get(2)[3]).isEqualTo("none since #1");
          assertThat(rows.get(1)[0]).isEqualTo("0");
          assertThat(rows.get(2)[0]).isEqualTo("1");
          assertExitCode();
        });
  }

  @Test
  void watchingEndsWhenItsOutputCannotBeWritten() throws Exception {
    PrintStream closed = new PrintStream(new ByteArrayOutputStream(), true, UTF_8);
    closed.close();
    TestTerminal terminal = new TestTerminal();
    Terminal broken = terminal.terminal(closed);
    String[] watch = {"status", "--at", url(), "--prefix", "3.0", "--watch", "--every", "1h"};
    whileTwoHaveJoined(() -> assertThat(Main.execute(broken, Map.of(), watch)).isEqualTo(1));
    assertThat(terminal.err()).isEqualTo("tutti: cannot write to standard output\n");
  }

  @Test
  void watchingAsksAgainUntilASignal() throws Exception {
    start(2, StalledRank.class);
    try (CommandProcess command =
        CommandProcess.start(
            "status", "--at", url(), "--watch", "--every", "50ms", "--timeout", "60s")) {
      command.await(lines -> lines.stream().filter(line -> line.startsWith("rank")).count() >= 5);
      new ProcessBuilder("kill", "-TERM", "" + command.pid()).start().waitFor();
      assertThat(command.exitCode()).isIn(0, 3, 4);
      assertThat(command.lines()).noneMatch(line -> line.contains("does not answer"));
    }
    try (TcpStore store = new TcpStore("127.0.0.1", server.port())) {
      assertThat(store.listKeys()).noneMatch(key -> key.startsWith("tutti/0/status/"));
    }
  }

  @Test
  void theBrowserThatOpensTheUrlSeesTheJob() throws Exception {
    start(2, StalledRank.class);
    try (HttpClient browser =
            HttpClient.newBuilder()
                .cookieHandler(new CookieManager())
                .followRedirects(HttpClient.Redirect.NORMAL)
                .build();
        CommandProcess command =
            CommandProcess.start("status", "--at", url(), "--web", "--timeout", "60s")) {
      String url = command.awaitLine(line -> line.startsWith("http://127.0.0.1:"));
      assertThat(get(browser, url)).contains("src=\"job.js\"");
      assertThat(get(browser, url.replaceFirst("\\?.*", "job")))
          .contains("\"operation\":\"allReduce #3\"", "\"waits_for\":[1]");
      new ProcessBuilder("kill", "-TERM", "" + command.pid()).start().waitFor();
      assertThat(command.exitCode()).isIn(0, 3, 4);
    }
  }

  private static String get(HttpClient browser, String url) throws Exception {
    HttpResponse<String> answer =
        browser.send(
            HttpRequest.newBuilder(URI.create(url)).build(), HttpResponse.BodyHandlers.ofString());
    assertThat(answer.statusCode()).isEqualTo(200);
    return answer.body();
  }

  @Test
  void watchingEndsWithTheStore() throws Exception {
    start(2, StalledRank.class);
    try (CommandProcess command =
        CommandProcess.start(
            "status", "--at", url(), "--watch", "--every", "50ms", "--timeout", "60s")) {
      command.await(lines -> lines.stream().filter(line -> line.startsWith("rank")).count() >= 2);
      server.close();
      assertThat(command.exitCode()).isIn(0, 3, 4);
      assertThat(command.lines())
          .contains("tutti status: the store has ended, and with it the job")
          .noneMatch(line -> line.startsWith("tutti status: store server"));
    }
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      value = {
        "MASTER_PORT=1 | tcp://127.0.0.1:1 | ssh HOST tutti status",
        "KUBERNETES_SERVICE_HOST=10.0.0.1 MASTER_PORT=1 | tcp://127.0.0.1:1 |"
            + " kubectl exec POD -- tutti status",
        "SLURM_JOB_ID=42 SLURM_JOB_NODELIST=tux[3-7] MASTER_PORT=1 | tcp://127.0.0.1:1 |"
            + " srun --jobid=42 --overlap -N 1 -n 1 -w tux3 tutti status",
        "SLURM_JOB_ID=42 SLURM_STEP_ID=0 SLURM_PROCID=0 SLURM_NTASKS=2"
            + " SLURM_JOB_NODELIST=127.0.0.1 | tcp://127.0.0.1:24479 |"
            + " srun --jobid=42 --overlap -N 1 -n 1 -w 127.0.0.1 tutti status"
      })
  void saysWhereToLookForRanksThatAreNotOnThisHost(String given, String store, String how) {
    Map<String, String> environment = new HashMap<>();
    for (String each : given.split(" ")) {
      environment.put(each.split("=")[0], each.split("=")[1]);
    }
    StatusCommand command =
        new StatusCommand(
            new TestTerminal().terminal(), Settings.ofEnvironment(environment), TreeMap::new);
    assertThatThrownBy(command::call)
        .isInstanceOf(LaunchException.class)
        .hasMessageStartingWith(
            "no ranks of user " + System.getProperty("user.name") + " found on this host (")
        .hasMessageContaining(store.substring("tcp://".length()))
        .hasMessageEndingWith(
            "; look for them where they are, as their user, by '"
                + how
                + "', or name their store with --at tcp://HOST:PORT");
  }

  /** Writes what the system shows of a rank's process. */
  private void process(String pid, String rank, String port, String... command) throws Exception {
    Path process = Files.createDirectory(folder.resolve(pid));
    Files.writeString(
        process.resolve("environ"),
        "RANK="
            + rank
            + "\0WORLD_SIZE=4\0MASTER_ADDR=localhost\0MASTER_PORT="
            + port
            + "\0TUTTI_TOKEN=0123456789abcdef\0");
    Files.writeString(process.resolve("cmdline"), String.join("\0", command) + "\0");
  }

  private StatusCommand command() {
    return new StatusCommand(
        new TestTerminal().terminal(),
        Settings.ofEnvironment(Map.of()),
        () -> LocalJobs.find(folder, folder));
  }

  @Test
  void severalJobsOfAHostAreToldApart() throws Exception {
    process("999999990", "0", "4711", "/usr/bin/java", "-Xmx1g", "-cp", "a.jar", "app.Train", "-x");
    process("999999991", "2", "4711", "/usr/bin/java", "-jar", "b.jar");
    process("999999992", "1", "4712", "/opt/python3", "train.py");
    String user = Files.getOwner(folder).toString();
    assertThatThrownBy(command()::call)
        .hasMessageStartingWith("several jobs have ranks on this host; choose one:\n")
        .hasMessageContaining("\n  --at tcp://localhost:4711  ranks 0, 2 of 4, java ")
        .hasMessageEndingWith("\n  --at tcp://localhost:4712  rank 1 of 4, python3, user " + user);
  }

  @Test
  void aGivenStoreIsReachedWithTheTokenOfARankOnThisHost() throws Exception {
    JobToken token = JobToken.of("0123456789abcdef");
    try (TcpStoreServer guarded = new TcpStoreServer(InetAddress.getLoopbackAddress(), 0, token)) {
      process("999999990", "0", "" + guarded.port(), "/usr/bin/java", "Train.java");
      StatusCommand command = command();
      new CommandLine(command).parseArgs("--at", "tcp://127.0.0.1:" + guarded.port());
      assertThatThrownBy(command::call).hasMessageStartingWith("no rank has joined at tcp://");
    }
  }

  @ParameterizedTest
  @ValueSource(strings = {"--every", "--timeout"})
  void refusesToWaitForNoTime(String option) {
    TestTerminal terminal = new TestTerminal();
    assertThat(terminal.tutti(Map.of(), "status", "--at", url(), option, "0"))
        .isEqualTo(Main.USAGE);
    assertThat(terminal.err()).isEqualTo("tutti status: " + option + " must be longer than 0\n");
  }

  @ParameterizedTest
  @ValueSource(strings = {"--every", "--timeout"})
  void refusesAWrongTimeAtOnce(String option) {
    TestTerminal terminal = new TestTerminal();
    assertThat(terminal.tutti(Map.of(), "status", "--at", url(), option, "soon"))
        .isEqualTo(Main.USAGE);
    assertThat(terminal.err())
        .startsWith(
            "tutti status: Invalid value for option '" + option + "': 'soon': expected a time ")
        .hasLineCount(1);
  }
}
