package dev.tutti.cli.run;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.tutti.cli.process.LaunchException;
import dev.tutti.cli.process.Posix;
import dev.tutti.store.HashStore;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.reflect.Proxy;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import java.util.concurrent.locks.LockSupport;
import java.util.function.Consumer;
import java.util.function.Predicate;
import org.junit.jupiter.api.Order;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

@Order(1)
class LauncherTest {
  private static final String[] SLEEPING = {"sh", "-c", "exec sleep 600"};

  private final RecordedOutput output = new RecordedOutput();
  private final List<String> messages = new CopyOnWriteArrayList<>();

  private Launcher launcher(LaunchPlan plan) {
    RankRange ranks = new RankRange(0, plan.localSize(), plan.masterAddress(), 4711);
    return new Launcher(
        plan, new SingleNode(ranks, () -> {}, () -> {}, HashStore::new), output, messages::add);
  }

  private int run(LaunchPlan plan) throws InterruptedException {
    int code = launcher(plan).run();
    assertThat(TestPlans.processesOf(plan.runId())).isEmpty();
    return code;
  }

  /** Receives each call of a launch's rendezvous once it has returned. */
  private interface CallListener {
    void called(Launcher launcher, String method, Object[] arguments);
  }

  private Launcher launcher(LaunchPlan plan, CallListener listener) {
    RankRange ranks = new RankRange(0, plan.localSize(), plan.masterAddress(), 4711);
    SingleNode node = new SingleNode(ranks, () -> {}, () -> {}, HashStore::new);
    AtomicReference<Launcher> launcher = new AtomicReference<>();
    LaunchRendezvous rendezvous =
        (LaunchRendezvous)
            Proxy.newProxyInstance(
                LaunchRendezvous.class.getClassLoader(),
                new Class<?>[] {LaunchRendezvous.class},
                (_, method, arguments) -> {
                  Object result = method.invoke(node, arguments);
                  listener.called(launcher.get(), method.getName(), arguments);
                  return result;
                });
    launcher.set(new Launcher(plan, rendezvous, output, messages::add));
    return launcher.get();
  }

  /** Makes a launcher that performs an action after each proposal, thus when a rank has failed. */
  private Launcher launcher(LaunchPlan plan, Consumer<Launcher> afterProposal) {
    return launcher(
        plan,
        (launcher, method, _) -> {
          if (method.equals("propose")) {
            afterProposal.accept(launcher);
          }
        });
  }

  /** Returns a command of a shell that waits until a file exists. */
  private static String awaitFile(Path file) {
    return "while [ ! -e " + file + " ]; do sleep 0.05; done";
  }

  @Test
  void givesEachRankItsEnvironment() throws InterruptedException {
    LaunchPlan plan =
        TestPlans.shell(3, "echo $RANK $LOCAL_RANK $WORLD_SIZE $MASTER_ADDR:$MASTER_PORT");
    assertThat(run(plan)).isZero();
    for (int rank = 0; rank < 3; rank++) {
      assertThat(output.out(rank)).containsExactly(rank + " " + rank + " 3 127.0.0.1:4711");
    }
    assertThat(messages).isEmpty();
  }

  @Test
  void hasOutputToTheLastByteWhenItReturns() throws InterruptedException {
    assertThat(run(TestPlans.shell(2, "seq 1 20000; printf end"))).isZero();
    for (int rank = 0; rank < 2; rank++) {
      assertThat(output.out(rank)).hasSize(20001).endsWith("19999", "20000", "end");
    }
  }

  private static LaunchPlan elastic(int restarts, String script) {
    return TestPlans.elastic(TestPlans.of(3, restarts, Optional.empty(), "sh", "-c", script));
  }

  @Test
  void anotherProcessTakesThePlaceOfOneThatFails(@TempDir Path folder) throws InterruptedException {
    Path file = folder.resolve("joined");
    String joiner = "echo joins $LOCAL_RANK $LOCAL_WORLD_SIZE $MASTER_PORT; touch " + file;
    String script =
        "case \"$RANK\" in 1) exit 3;; '') " + joiner + ";; *) " + awaitFile(file) + ";; esac";
    assertThat(run(elastic(1, script))).isZero();
    assertThat(output.out(1)).containsExactly("joins 1 3 4711");
    assertThat(messages)
        .singleElement()
        .asString()
        .matches(
            "rank 1 ended with exit code 3 after .*; another process joins in its place, restart 1"
                + " of 1");
  }

  @Test
  void onlySoManyAreReplaced() throws InterruptedException {
    String script = "case \"$RANK\" in 1|'') exit 3;; *) exec sleep 600;; esac";
    assertThat(run(elastic(2, script))).isEqualTo(3);
    assertThat(messages).hasSize(3);
    assertThat(messages.get(1)).endsWith("another process joins in its place, restart 2 of 2");
    assertThat(messages.get(2)).startsWith("the first to fail: rank 1 ended with exit code 3");
  }

  @Test
  void theLastProcessIsNotReplaced() throws InterruptedException {
    String script = "case \"$RANK\" in 1) sleep 0.5; exit 3;; *) exit 0;; esac";
    assertThat(run(elastic(5, script))).isEqualTo(3);
    assertThat(messages).hasSize(1);
  }

  /** An output that takes nothing until it is opened, as a terminal that is paused. */
  private final class PausedOutput implements RankOutput {
    private final CountDownLatch opened = new CountDownLatch(1);

    @Override
    public void lines(int rank, Channel channel, List<byte[]> lines) {
      try {
        assertThat(opened.await(10, TimeUnit.MINUTES)).isTrue();
      } catch (InterruptedException e) {
        throw new AssertionError(e);
      }
      output.lines(rank, channel, lines);
    }
  }

  /** Starts a rank that fails, and waits until that is reported. */
  private Future<Integer> startAndFail(
      ExecutorService threads, PausedOutput paused, AtomicReference<Launcher> started)
      throws InterruptedException {
    LaunchPlan plan = TestPlans.shell(1, "seq 1 5000; printf end >&2; exit 3");
    RankRange ranks = new RankRange(0, 1, plan.masterAddress(), 4711);
    CountDownLatch reported = new CountDownLatch(1);
    Launcher launcher =
        new Launcher(
            plan,
            new SingleNode(ranks, () -> {}, () -> {}, HashStore::new),
            paused,
            _ -> reported.countDown());
    started.set(launcher);
    Future<Integer> code = threads.submit(launcher::run);
    assertThat(reported.await(2, TimeUnit.MINUTES)).isTrue();
    return code;
  }

  @Test
  void keepsOutputThatNobodyTakesForAWhile() throws Exception {
    try (ExecutorService threads = Executors.newSingleThreadExecutor()) {
      PausedOutput paused = new PausedOutput();
      Future<Integer> code = startAndFail(threads, paused, new AtomicReference<>());
      paused.opened.countDown();
      assertThat(code.get(2, TimeUnit.MINUTES)).isEqualTo(3);
      assertThat(output.out(0)).hasSize(5000).endsWith("4999", "5000");
      assertThat(output.lines()).contains("0:ERR:end");
    }
  }

  @Test
  void aSignalEndsTheWaitForOutputThatNobodyTakes() throws Exception {
    try (ExecutorService threads = Executors.newSingleThreadExecutor()) {
      PausedOutput paused = new PausedOutput();
      AtomicReference<Launcher> launcher = new AtomicReference<>();
      Future<Integer> code = startAndFail(threads, paused, launcher);
      launcher.get().signalled(Posix.SIGTERM);
      assertThat(code.get(2, TimeUnit.MINUTES)).isEqualTo(3);
      assertThat(output.lines()).isEmpty();
      paused.opened.countDown();
    }
  }

  @Test
  void givesRanksNoInput() throws InterruptedException {
    assertThat(run(TestPlans.shell(1, "read line && echo got || echo nothing"))).isZero();
    assertThat(output.out(0)).containsExactly("nothing");
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
    assertThat(run(plan)).isEqualTo(3);
    assertThat(messages).hasSize(1);
    assertThat(messages.getFirst())
        .startsWith("the first to fail: rank 1 ended with exit code 3 after ")
        .contains(" s; it would fail again, so it is not restarted\n");
    Path file = Path.of(output.out(1).getFirst());
    assertThat(file.getFileName()).hasToString("0-1");
    assertThat(file.getParent()).doesNotExist();
  }

  @Test
  void endsTheOthersWhenOneFailsAndReportsTheFirst() throws InterruptedException {
    LaunchPlan plan =
        TestPlans.shell(3, "echo one; [ $RANK = 1 ] && { echo boom >&2; exit 7; }; exec sleep 600");
    assertThat(run(plan)).isEqualTo(7);
    assertThat(messages).hasSize(1);
    List<String> report = messages.getFirst().lines().toList();
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
    assertThat(run(plan)).isEqualTo(137);
    assertThat(messages.getFirst())
        .startsWith("the first to fail: rank 2 was killed by SIGKILL (exit code 137) after ")
        .contains("it printed nothing");
  }

  @Test
  void saysThatARankPrintedOnlyStackFrames() throws InterruptedException {
    assertThat(run(TestPlans.shell(1, "printf '\\tat a.B.c(B.java:1)\\n' >&2; exit 1")))
        .isEqualTo(1);
    assertThat(messages.getFirst()).endsWith("\n  it printed only stack frames");
  }

  @Test
  void countsTheTimesOfAReportFromTheStartOfTheAttempt() throws InterruptedException {
    LaunchPlan base = TestPlans.shell(2, "exit $((RANK + 3))");
    // On a busy machine, the last of many ranks starts as late as these.
    Launcher launcher =
        launcher(
            TestPlans.lingering(base, Duration.ofHours(1)),
            (_, method, _) -> {
              if (method.equals("begin")) {
                awaitTime(Duration.ofSeconds(1));
              }
            });
    assertThat(launcher.run()).isBetween(3, 4);
    assertThat(messages).hasSize(1);
    assertThat(messages.getFirst().lines().filter(line -> line.contains(" ended with ")))
        .hasSize(2)
        .allSatisfy(
            line ->
                assertThat(Double.parseDouble(line.replaceFirst(".* after (.*) s", "$1")))
                    .isGreaterThanOrEqualTo(1.0));
  }

  private static void awaitTime(Duration time) {
    long start = System.nanoTime();
    while (System.nanoTime() - start < time.toNanos()) {
      LockSupport.parkNanos(1_000_000);
    }
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
            + awaitFile(noticed)
            + "; echo rank 2 is gone; exit $((RANK + 20))";
    LaunchPlan plan = TestPlans.lingering(TestPlans.shell(3, script), Duration.ofHours(1));
    Launcher launcher = launcher(plan, _ -> create(noticed));
    assertThat(launcher.run()).isEqualTo(end.equals("exit 7") ? 7 : 137);
    assertThat(TestPlans.processesOf(plan.runId())).isEmpty();
    assertThat(output.out(0)).containsExactly("rank 2 is gone");
    assertThat(output.out(1)).containsExactly("rank 2 is gone");
    assertThat(messages).hasSize(1);
    assertThat(messages.getFirst())
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
            + awaitFile(trapped)
            + "; exit 7; }; trap 'echo asked to end; exit 0' TERM; touch "
            + trapped
            + "; sleep 600 & wait";
    LaunchPlan plan = TestPlans.lingering(TestPlans.shell(2, script), Duration.ofMillis(300));
    long start = System.nanoTime();
    assertThat(run(plan)).isEqualTo(7);
    assertThat(Duration.ofNanos(System.nanoTime() - start))
        .isGreaterThanOrEqualTo(Duration.ofMillis(300));
    assertThat(output.out(0)).containsExactly("asked to end");
  }

  @Test
  void aSignalEndsRanksThatLinger(@TempDir Path directory) throws Exception {
    Path trapped = directory.resolve("trapped");
    String script =
        "[ $RANK = 1 ] && { "
            + awaitFile(trapped)
            + "; exit 7; }; trap 'echo got INT; exit 0' INT; touch "
            + trapped
            + "; sleep 600 & wait";
    LaunchPlan plan = TestPlans.lingering(TestPlans.shell(2, script), Duration.ofHours(1));
    Launcher launcher = launcher(plan, self -> self.signalled(Posix.SIGINT));
    assertThat(launcher.run()).isEqualTo(7);
    assertThat(output.out(0)).containsExactly("got INT");
    assertThat(messages.getFirst()).startsWith("the first to fail: rank 1 ended with exit code 7");
    assertThat(TestPlans.processesOf(plan.runId())).isEmpty();
  }

  @Test
  void showsNoMoreThanTheLastLines() throws InterruptedException {
    assertThat(run(TestPlans.shell(1, "seq 1 100; exit 1"))).isEqualTo(1);
    assertThat(messages.getFirst().lines().skip(2))
        .hasSize(20)
        .startsWith("    81")
        .endsWith("    100");
  }

  @Test
  void saysNothingOfTheOutputIfNoLastLinesAreWanted() throws InterruptedException {
    assertThat(run(TestPlans.withoutTail(TestPlans.shell(1, "echo boom; exit 1")))).isEqualTo(1);
    assertThat(output.out(0)).containsExactly("boom");
    assertThat(messages).hasSize(1);
    assertThat(messages.getFirst())
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
    assertThat(run(TestPlans.shell(1, script))).isEqualTo(1);
    assertThat(messages.getFirst().lines().skip(2))
        .containsExactly(
            "    Exception in thread \"main\" java.lang.Error: boom",
            "    Caused by: java.io.IOException: deep",
            "    \tat sea (a line of its own)");
    assertThat(output.out(0)).hasSize(35).contains("\tat a.b/c.D.e(D.java:29)");
  }

  @Test
  void killsARankThatIgnoresSigterm(@TempDir Path directory) throws InterruptedException {
    Path trapped = directory.resolve("trapped");
    LaunchPlan base =
        TestPlans.shell(
            2,
            "[ $RANK = 0 ] && { "
                + awaitFile(trapped)
                + "; exit 5; }; trap '' TERM; touch "
                + trapped
                + "; while :; do sleep 600; done");
    LaunchPlan plan = withGrace(base, Duration.ofMillis(300));
    assertThat(launcher(plan).run()).isEqualTo(5);
    // The launcher does not wait for the end of a child of the rank that it has killed.
    TestPlans.awaitNoProcessOf(plan.runId());
    assertThat(messages.getFirst()).contains("rank 1 was stopped by SIGKILL (exit code 137)");
  }

  @Test
  void endsWhatARankLeavesBehind() throws InterruptedException {
    LaunchPlan plan = TestPlans.shell(2, "sleep 600 & echo started");
    assertThat(run(plan)).isZero();
  }

  @Test
  void endsTheWholeTreeOfARank() throws InterruptedException {
    LaunchPlan plan =
        TestPlans.shell(2, "[ $RANK = 1 ] && exit 3; sh -c 'sleep 600; echo no' ; echo no");
    assertThat(run(plan)).isEqualTo(3);
    assertThat(output.lines()).isEmpty();
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
    assertThat(run(plan)).isZero();
    assertThat(output.out(1)).containsExactly("0 of 2", "1 of 2", "2 of 2");
    assertThat(messages)
        .filteredOn(message -> message.startsWith("restarting all ranks"))
        .containsExactly(
            "restarting all ranks, restart 1 of 2", "restarting all ranks, restart 2 of 2");
  }

  @Test
  void givesUpAfterTheLastRestart() throws InterruptedException {
    LaunchPlan plan = TestPlans.of(2, 1, Optional.empty(), "sh", "-c", "exit 4");
    assertThat(run(plan)).isEqualTo(4);
    assertThat(messages).hasSize(3);
  }

  /** Runs ranks, and sends a signal each time their lines are as given. */
  private void runInterrupted(LaunchPlan plan, List<Predicate<List<String>>> moments)
      throws Exception {
    Launcher launcher = launcher(plan);
    Thread signaller =
        Thread.ofPlatform()
            .start(
                () -> {
                  try {
                    for (Predicate<List<String>> moment : moments) {
                      output.await(moment);
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
      assertThat(output.out(rank)).containsExactly("ready", "interrupted");
    }
    assertThat(messages).containsExactly("stopped by SIGINT");
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
                + awaitFile(trapped)
                + "; exit 3; }; trap 'echo stopping; sleep 600' TERM; touch "
                + trapped
                + "; while :; do sleep 600 & wait $!; done");
    runInterrupted(plan, List.of(lines -> lines.contains("1:OUT:stopping")));
    assertThat(messages).hasSize(2).last().isEqualTo("stopped by SIGINT");
    assertThat(messages.getFirst()).startsWith("the first to fail: rank 0 ended");
    assertThat(output.out(1)).containsExactly("stopping");
  }

  @Test
  void startsNoRankWhileASignalWaits(@TempDir Path logs) throws InterruptedException {
    LaunchPlan plan = TestPlans.of(3, 1, Optional.of(logs), SLEEPING);
    Launcher launcher =
        launcher(
            plan,
            (self, method, _) -> {
              if (method.equals("begin")) {
                self.signalled(Posix.SIGTERM);
              }
            });
    assertThat(launcher.run()).isEqualTo(143);
    assertThat(messages).containsExactly("stopped by SIGTERM");
    assertThat(logs).isEmptyDirectory();
  }

  @Test
  void startsNoMoreRanksOnceASignalCame(@TempDir Path logs) throws Exception {
    LaunchPlan plan = TestPlans.of(3, 0, Optional.of(logs), "sh", "-c", "echo $RANK");
    RankRange ranks = new RankRange(0, plan.localSize(), plan.masterAddress(), 4711);
    SingleNode node = new SingleNode(ranks, () -> {}, () -> {}, HashStore::new);
    Launcher launcher =
        new Launcher(plan, node, output, messages::add) {
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
    assertThat(messages).containsExactly("stopped by SIGTERM");
    Path attempt = logs.resolve(plan.runId()).resolve("attempt_0");
    assertThat(attempt.resolve("1")).exists();
    assertThat(attempt.resolve("2")).doesNotExist();
  }

  @ParameterizedTest
  @ValueSource(ints = {0, 1})
  void stopsTheRanksWhenNobodyReadsTheOutput(int maxRestarts) throws Exception {
    LaunchPlan plan =
        TestPlans.of(
            2,
            maxRestarts,
            Optional.empty(),
            "sh",
            "-c",
            "[ $RANK = 0 ] && echo x; exec sleep 600");
    RankRange ranks = new RankRange(0, 2, plan.masterAddress(), 4711);
    RankOutput unread =
        new RankOutput() {
          @Override
          public void lines(int rank, Channel channel, List<byte[]> lines) {
            output.lines(rank, channel, lines);
          }

          @Override
          public boolean isUnread() {
            return true;
          }
        };
    SingleNode node = new SingleNode(ranks, () -> {}, () -> {}, HashStore::new);
    assertThat(new Launcher(plan, node, unread, messages::add).run()).isEqualTo(1);
    assertThat(messages).containsExactly("stopped because nobody reads the output any more");
    assertThat(output.lines()).containsExactly("0:OUT:x");
    assertThat(TestPlans.processesOf(plan.runId())).isEmpty();
  }

  @Test
  void waitsForOtherNodesAsLongAsTheirRanksMayTakeToStop() throws Exception {
    Duration grace = Duration.ofSeconds(17);
    Duration linger = Duration.ofSeconds(19);
    LaunchPlan base = TestPlans.of(1, 1, Optional.empty(), "sh", "-c", "exit 3");
    LaunchPlan plan = TestPlans.lingering(withGrace(base, grace), linger);
    List<Duration> waits = new CopyOnWriteArrayList<>();
    Launcher launcher =
        launcher(
            plan,
            (_, method, arguments) -> {
              if (method.equals("awaitStopped")) {
                waits.add((Duration) arguments[1]);
              }
            });
    assertThat(launcher.run()).isEqualTo(3);
    // Time to report what failed, SIGTERM to the ranks, SIGKILL, SIGTERM to leftover processes, and
    // their output.
    assertThat(waits).hasSize(1);
    assertThat(waits.getFirst()).isGreaterThan(linger.plus(grace.multipliedBy(2)).plusSeconds(12));
  }

  @Test
  void killsAtTheSecondSignal() throws Exception {
    LaunchPlan plan =
        withGrace(
            TestPlans.shell(
                1, "trap 'echo no' INT; echo ready; while :; do sleep 600 & wait; done"),
            Duration.ofHours(1));
    runInterrupted(plan, List.of(lines -> lines.size() == 1, lines -> lines.size() == 2));
  }

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
    assertThat(run(plan)).isZero();
    Path last = directory.resolve(plan.runId()).resolve("attempt_1").resolve("1");
    assertThat(Files.readString(last.resolve("stdout.log"))).isEqualTo("out 1\n");
    assertThat(Files.readString(last.resolve("stderr.log"))).isEqualTo("err 1\n");
    assertThat(messages.getFirst()).endsWith("  logs: " + directory.resolve(plan.runId()));
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
    assertThatThrownBy(() -> launcher(plan).run())
        .isInstanceOfSatisfying(
            LaunchException.class, e -> assertThat(e.exitCode()).isEqualTo(code))
        .hasMessage(message);
  }

  @Tag("full")
  @Test
  void leaksNoProcessInFiftyRuns() throws InterruptedException {
    for (int i = 0; i < 50; i++) {
      String script =
          i % 2 == 0 ? "sleep 600 & exit 0" : "[ $RANK = 1 ] && exit 1; sleep 600 & sleep 600";
      assertThat(run(TestPlans.shell(2, script))).isEqualTo(i % 2);
    }
  }

  @Test
  void keepsTheLogsOfAnEarlierRunOfTheSameName(@TempDir Path directory) throws Exception {
    LaunchPlan plan = TestPlans.of(2, 0, Optional.of(directory), "sh", "-c", "echo $RANK");
    assertThat(run(plan)).isZero();
    assertThat(messages).isEmpty();
    Path first = directory.resolve(plan.runId());
    Path log = Path.of("attempt_0", "1", "stdout.log");
    for (int number = 2; number <= 3; number++) {
      Files.writeString(first.resolve(log), "first");
      assertThat(run(plan)).isZero();
      Path later = directory.resolve(plan.runId() + "_" + number);
      assertThat(messages)
          .last()
          .isEqualTo(first + " has logs of an earlier run; the logs of this run are in " + later);
      assertThat(later.resolve(log)).hasContent("1");
    }
    assertThat(first.resolve(log)).hasContent("first");
  }

  private static LaunchPlan withGrace(LaunchPlan plan, Duration grace) {
    return TestPlans.with(plan, plan.logDirectory(), grace, plan.aotCache());
  }

  @Test
  void keepsWhatTheFirstRankLoadedAndStartsLaterRanksFromIt(@TempDir Path folder) throws Exception {
    AotCache cache = new AotCache(folder.resolve("app.aot"));
    String java = Path.of(System.getProperty("java.home"), "bin", "java").toString();
    assertThat(run(withCache(cache, java, "-XX:+UseSerialGC", "-version"))).isZero();
    assertThat(cache.file()).isNotEmptyFile();
    assertThat(folder.toFile().list()).containsExactly("app.aot");
    // In this mode Java does not start if the file does not match.
    assertThat(run(withCache(cache, java, "-XX:AOTMode=on", "-XX:+UseSerialGC", "-version")))
        .isZero();
    assertThat(messages).isEmpty();
  }

  @Test
  void keepsNothingOfRanksThatFail(@TempDir Path folder) throws Exception {
    AotCache cache = new AotCache(folder.resolve("app.aot"));
    String java = Path.of(System.getProperty("java.home"), "bin", "java").toString();
    assertThat(run(withCache(cache, java, "NoSuchClass"))).isEqualTo(1);
    assertThat(folder).isEmptyDirectory();
  }

  private static LaunchPlan withCache(AotCache cache, String... command) {
    LaunchPlan plan = TestPlans.of(2, 0, Optional.empty(), command);
    return TestPlans.with(plan, plan.logDirectory(), plan.grace(), Optional.of(cache));
  }
}
