package dev.tutti.cli.run;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.tutti.Store;
import dev.tutti.StoreConnectionException;
import dev.tutti.StoreTimeoutException;
import dev.tutti.cli.process.LaunchException;
import dev.tutti.cli.process.Posix;
import dev.tutti.shared.Until;
import dev.tutti.store.HashStore;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.UUID;
import java.util.concurrent.Callable;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.LockSupport;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class StoreRendezvousTest {
  private static final String SUCCEEDED = "tutti-run/0/succeeded";

  @TempDir private Path directory;
  private final RecordedOutput output = new RecordedOutput();
  private final List<String> messages = new CopyOnWriteArrayList<>();
  private final String runId = UUID.randomUUID().toString();
  private final Store shared = new HashStore();

  private LaunchPlan plan(int node, int localSize, int maxRestarts, String script) {
    return planOf(node, localSize, maxRestarts, "sh", "-c", script);
  }

  private LaunchPlan planOf(int node, int localSize, int maxRestarts, String... command) {
    return planOf(2, node, localSize, maxRestarts, Duration.ofMinutes(5), command);
  }

  private LaunchPlan planOf(
      int nodes, int node, int localSize, int maxRestarts, Duration timeout, String... command) {
    LaunchPlan base = TestPlans.of(localSize, maxRestarts, Optional.empty(), command);
    return new LaunchPlan(
        base.command(),
        localSize,
        nodes,
        node,
        "node-zero",
        29500,
        maxRestarts,
        runId,
        base.role(),
        base.logDirectory(),
        base.tailLines(),
        base.linger(),
        base.grace(),
        timeout,
        base.environment(),
        Optional.empty(),
        false,
        Optional.empty());
  }

  private void clear() {
    shared.listKeys().stream()
        .filter(key -> !key.startsWith("tutti-run/"))
        .forEach(shared::deleteKey);
  }

  /** Makes a launcher; on a busy machine it may also say that it waits for the other node. */
  private Launcher launcher(LaunchPlan plan, LaunchRendezvous rendezvous) {
    return new Launcher(
        plan,
        rendezvous,
        output,
        message -> {
          if (!message.startsWith("waiting up to ")) {
            messages.add(plan.nodeRank() + ": " + message);
          }
        });
  }

  /** Runs node 0 with two ranks and node 1 with one, and returns their exit codes. */
  private List<Integer> runNodes(int maxRestarts, String script) throws Exception {
    List<Callable<Integer>> nodes = new ArrayList<>();
    shared.set("address", "of the first attempt");
    for (int node = 0; node < 2; node++) {
      LaunchPlan plan = plan(node, node == 0 ? 2 : 1, maxRestarts, script);
      Store store = shared.duplicate();
      nodes.add(
          () -> {
            try (LaunchRendezvous rendezvous =
                new StoreRendezvous(plan, store, 29501, this::clear, () -> {})) {
              return launcher(plan, rendezvous).run();
            }
          });
    }
    List<Integer> codes = new ArrayList<>();
    try (ExecutorService threads = Executors.newFixedThreadPool(2)) {
      for (Future<Integer> code : threads.invokeAll(nodes, 4, TimeUnit.MINUTES)) {
        codes.add(code.get());
      }
    }
    assertThat(TestPlans.processesOf(runId)).isEmpty();
    return codes;
  }

  @Test
  void numbersRanksAcrossNodes() throws Exception {
    assertThat(
            runNodes(0, "echo $RANK $LOCAL_RANK $GROUP_RANK $WORLD_SIZE $MASTER_ADDR:$MASTER_PORT"))
        .containsExactly(0, 0);
    assertThat(output.out(0)).containsExactly("0 0 0 3 node-zero:29501");
    assertThat(output.out(1)).containsExactly("1 1 0 3 node-zero:29501");
    assertThat(output.out(2)).containsExactly("2 0 1 3 node-zero:29501");
    assertThat(shared.check(List.of("address"))).isTrue();
    assertThat(messages).isEmpty();
  }

  @Test
  void endsAllNodesWhenARankOfOneFails() throws Exception {
    assertThat(runNodes(0, "[ $RANK = 2 ] && { echo boom; exit 6; }; exec sleep 600"))
        .containsExactly(6, 6);
    assertThat(messages).hasSize(2);
    assertThat(messages)
        .allMatch(
            text -> text.matches("(?s)[01]: the first to fail: rank 2 ended .*\\(node 1\\).*"))
        .anyMatch(text -> text.contains("    boom"));
  }

  @Test
  void startsAllNodesAgain() throws Exception {
    assertThat(
            runNodes(
                1,
                "echo $TORCHELASTIC_RESTART_COUNT; [ $TORCHELASTIC_RESTART_COUNT = 1 ] && exit 0;"
                    + " [ $RANK = 2 ] && exit 6; exec sleep 600"))
        .containsExactly(0, 0);
    assertThat(output.out(2)).containsExactly("0", "1");
    // The first attempt may end before these ranks print anything.
    assertThat(output.out(0)).endsWith("1").isSubsetOf("0", "1");
    assertThat(output.out(1)).endsWith("1").isSubsetOf("0", "1");
    assertThat(shared.listKeys()).isNotEmpty().allMatch(key -> key.startsWith("tutti-run/"));
  }

  @Test
  void waitsForTheRanksOfOtherNodes() throws Exception {
    // Node 0 finishes at once and must still be notified of the failure on node 1.
    assertThat(runNodes(0, "[ $RANK = 2 ] || exit 0; sleep 0.5; exit 3")).containsExactly(3, 3);
  }

  /** Runs one node beside others, with a heartbeat every 50 ms. */
  private Future<Integer> start(
      ExecutorService thread, Launcher launcher, LaunchRendezvous rendezvous) {
    return thread.submit(
        () -> {
          try (rendezvous) {
            return launcher.run();
          }
        });
  }

  private StoreRendezvous rendezvous(LaunchPlan plan, Store store) {
    return new StoreRendezvous(
        plan, store, 29501, this::clear, () -> {}, Duration.ofMinutes(5), Duration.ofMillis(50));
  }

  @Test
  void aRequestToScaleIsRefused() {
    StoreRendezvous nodes = rendezvous(plan(1, 1, 0, "exit 0"), shared.duplicate());
    assertThat(nodes.watchScaling((_, _) -> {})).isNull();
    assertThatThrownBy(() -> Scaling.request(shared, 2, Duration.ofMinutes(5)))
        .isInstanceOf(LaunchException.class)
        .hasMessage(
            "this job has 2 nodes, and tutti scale changes jobs of a single node; with --nnodes"
                + " MIN:MAX, nodes come and go");
  }

  @ParameterizedTest
  @CsvSource({"0, exit 0", "6, [ $RANK = 2 ] && exit 6; exec sleep 600"})
  void saysHowItsRanksEndedThoughTheFirstCallsAfterThatFail(int code, String script)
      throws Exception {
    try (ExecutorService threads = Executors.newFixedThreadPool(2)) {
      List<Future<Integer>> codes = new ArrayList<>();
      for (int node = 0; node < 2; node++) {
        LaunchPlan plan = plan(node, node == 0 ? 2 : 1, 0, script);
        AtomicInteger failures = new AtomicInteger(-1);
        Store store =
            PlayedStore.of(
                shared.duplicate(),
                (method, _, onDuplicate) -> {
                  if (method.equals("duplicate")) {
                    failures.set(2); // The nodes have met.
                  } else if (!onDuplicate
                      && List.of("add", "compareSet").contains(method)
                      && failures.getAndDecrement() > 0) {
                    throw new StoreConnectionException("the connection was reset");
                  }
                });
        StoreRendezvous rendezvous = rendezvous(plan, store);
        codes.add(start(threads, launcher(plan, rendezvous), rendezvous));
      }
      try {
        assertThat(codes.get(0).get(4, TimeUnit.MINUTES)).isEqualTo(code);
        assertThat(codes.get(1).get(4, TimeUnit.MINUTES)).isEqualTo(code);
      } finally {
        threads.shutdownNow();
      }
    }
    assertThat(TestPlans.processesOf(runId)).isEmpty();
  }

  @Test
  void endsTheRanksWhenTheStoreAnswersNoMore() throws Exception {
    LaunchPlan plan = plan(1, 1, 5, "echo ready; exec sleep 600");
    AtomicBoolean frozen = new AtomicBoolean();
    try (HashStore shared = new HashStore();
        ExecutorService thread = Executors.newSingleThreadExecutor()) {
      shared.set("tutti-run/node/0", "1");
      Store store =
          PlayedStore.of(
              shared.duplicate(),
              (method, _, _) -> {
                if (frozen.get() && !method.equals("close")) {
                  LockSupport.parkNanos(10_000_000); // like a short deadline
                  throw new StoreTimeoutException("it did not answer in time");
                }
                if (method.equals("add")) {
                  shared.add("tutti-run/alive/0", 1); // only the store is lost
                }
              });
      LaunchRendezvous rendezvous =
          new StoreRendezvous(
              plan, store, 1, this::clear, () -> {}, Duration.ofSeconds(1), Duration.ofMillis(50));
      Future<Integer> code = start(thread, launcher(plan, rendezvous), rendezvous);
      output.await(lines -> lines.size() == 1);
      frozen.set(true);
      try {
        assertThat(code.get(4, TimeUnit.MINUTES)).isEqualTo(1);
      } finally {
        thread.shutdownNow();
      }
    }
    assertThat(messages).containsExactly("1: lost the store of node 0: it did not answer in time");
    assertThat(TestPlans.processesOf(runId)).isEmpty();
  }

  @Test
  void endsAtASignalWhileItWaitsForOtherNodes() throws Exception {
    LaunchPlan plan = plan(0, 1, 0, "exec sleep 600");
    List<Duration> waits = new CopyOnWriteArrayList<>();
    try (ExecutorService thread = Executors.newSingleThreadExecutor()) {
      StoreRendezvous rendezvous = rendezvous(plan, noting(waits, shared.duplicate()));
      Launcher launcher = launcher(plan, rendezvous);
      Future<Integer> code = start(thread, launcher, rendezvous);
      shared.await(List.of("tutti-run/node/0"), Duration.ofMinutes(4));
      launcher.signalled(Posix.SIGINT);
      assertThat(code.get(4, TimeUnit.MINUTES)).isEqualTo(130);
    }
    // No node came for which the store would be kept.
    assertThat(waits).isEmpty();
    assertThat(messages).containsExactly("0: stopped by SIGINT");
    assertThat(output.lines()).isEmpty();
  }

  /** Wraps a store, and notes how long it is to wait for keys. */
  private static Store noting(List<Duration> waits, Store store) {
    return PlayedStore.of(
        store,
        (method, arguments, _) -> {
          if (method.equals("await")) {
            waits.add((Duration) arguments[1]);
          }
        });
  }

  private interface Signaller {
    void signal(List<Launcher> launchers) throws Exception;
  }

  /** Starts node 0 with two ranks and node 1 with one, and sends a signal to one of them. */
  private void assertAllEndWith(int code, int maxRestarts, String script, Signaller signaller)
      throws Exception {
    try (ExecutorService threads = Executors.newFixedThreadPool(2)) {
      List<Future<Integer>> codes = new ArrayList<>();
      List<Launcher> launchers = new ArrayList<>();
      for (int node = 0; node < 2; node++) {
        LaunchPlan plan = plan(node, node == 0 ? 2 : 1, maxRestarts, script);
        StoreRendezvous rendezvous = rendezvous(plan, shared.duplicate());
        Launcher launcher = launcher(plan, rendezvous);
        launchers.add(launcher);
        codes.add(start(threads, launcher, rendezvous));
      }
      try {
        signaller.signal(launchers);
        assertThat(codes.get(0).get(4, TimeUnit.MINUTES)).isEqualTo(code);
        assertThat(codes.get(1).get(4, TimeUnit.MINUTES)).isEqualTo(code);
      } finally {
        threads.shutdownNow();
      }
    }
    assertThat(TestPlans.processesOf(runId)).isEmpty();
  }

  @Test
  void aSignalAfterTheOwnRanksEndedWellStopsAllNodes() throws Exception {
    String script = "[ $RANK = 2 ] && exec sleep 600; exit 0";
    assertAllEndWith(
        130,
        0,
        script,
        launchers -> {
          Until.holds(() -> shared.listKeys().stream().anyMatch(key -> key.startsWith(SUCCEEDED)));
          launchers.getFirst().signalled(Posix.SIGINT);
        });
    assertThat(messages).containsExactlyInAnyOrder("0: stopped by SIGINT", "1: stopped by SIGINT");
  }

  @Test
  void aSignalToANodeWhileAllStopEndsAllNodes() throws Exception {
    Path trapped = directory.resolve("trapped");
    String script =
        "[ $RANK = 2 ] || { while [ ! -e "
            + trapped
            + " ]; do sleep 0.05; done; exit 3; }; trap 'echo stopping; sleep 600' TERM; touch "
            + trapped
            + "; while :; do sleep 600 & wait $!; done";
    assertAllEndWith(
        143,
        3,
        script,
        launchers -> {
          output.await(lines -> lines.contains("2:OUT:stopping"));
          launchers.get(1).signalled(Posix.SIGTERM);
        });
    assertThat(messages)
        .hasSize(4)
        .contains("0: stopped by SIGTERM", "1: stopped by SIGTERM")
        .noneMatch(text -> text.contains("restarting all ranks"));
  }

  @Test
  void endsAllNodesWhenOneCannotStartItsRanks() throws Exception {
    Path file = Files.createFile(directory.resolve("file"));
    try (ExecutorService threads = Executors.newFixedThreadPool(2)) {
      List<Future<Integer>> codes = new ArrayList<>();
      for (int node = 0; node < 2; node++) {
        LaunchPlan plan = plan(node, node == 0 ? 2 : 1, 0, "exec sleep 600");
        LaunchPlan logging =
            node == 0
                ? plan
                : TestPlans.with(
                    plan, Optional.of(file.resolve("logs")), plan.grace(), plan.aotCache());
        StoreRendezvous rendezvous = rendezvous(plan, shared.duplicate());
        codes.add(start(threads, launcher(logging, rendezvous), rendezvous));
      }
      try {
        assertThat(codes.get(0).get(4, TimeUnit.MINUTES)).isEqualTo(126);
        assertThatThrownBy(() -> codes.get(1).get(4, TimeUnit.MINUTES))
            .hasCauseInstanceOf(LaunchException.class)
            .hasMessageContaining("cannot start rank 2: ");
      } finally {
        threads.shutdownNow();
      }
    }
    assertThat(messages).hasSize(1);
    assertThat(messages.getFirst()).startsWith("0: cannot start rank 2: ");
    assertThat(TestPlans.processesOf(runId)).isEmpty();
  }

  @Test
  void endsNodesThatWaitForOneWithoutTheProgram() throws Exception {
    LaunchPlan here = plan(0, 1, 0, "true");
    LaunchPlan there = planOf(1, 1, 0, "no-such-program");
    try (ExecutorService threads = Executors.newFixedThreadPool(2)) {
      List<Future<Integer>> nodes = new ArrayList<>();
      for (LaunchPlan plan : List.of(here, there)) {
        StoreRendezvous rendezvous = rendezvous(plan, shared.duplicate());
        nodes.add(start(threads, launcher(plan, rendezvous), rendezvous));
        Until.holds(() -> shared.check(List.of("tutti-run/node/0")));
      }
      assertThatThrownBy(() -> nodes.get(0).get(4, TimeUnit.MINUTES))
          .cause()
          .isInstanceOfSatisfying(
              LaunchException.class, e -> assertThat(e.exitCode()).isEqualTo(127))
          .hasMessage("node 1: no such program: 'no-such-program'");
      assertThatThrownBy(() -> nodes.get(1).get(4, TimeUnit.MINUTES))
          .cause()
          .hasMessage("no such program: 'no-such-program'");
    }
  }

  @Test
  void saysOnceWhichNodesAreMissing() throws Exception {
    LaunchPlan plan = plan(0, 1, 0, "true");
    LaunchRendezvous rendezvous = rendezvous(plan, shared.duplicate());
    try (ExecutorService thread = Executors.newSingleThreadExecutor()) {
      Future<RankRange> ranks = thread.submit(() -> rendezvous.join(messages::add));
      Until.holds(() -> !messages.isEmpty());
      StoreRendezvous other = rendezvous(plan(1, 2, 0, "true"), shared.duplicate());
      assertThat(other.join(messages::add)).isEqualTo(new RankRange(1, 3, "node-zero", 29501));
      assertThat(ranks.get(4, TimeUnit.MINUTES)).isEqualTo(new RankRange(0, 3, "node-zero", 29501));
    }
    assertThat(messages)
        .containsExactly(
            "waiting up to 5 min (--rdzv-timeout) for node 1 of 2 to join at node-zero:29501");
  }

  @Test
  void aTwinThatIsRefusedDoesNotEndTheOthers() throws Exception {
    StoreRendezvous one = rendezvous(plan(1, 1, 0, "true"), shared.duplicate());
    try (ExecutorService thread = Executors.newSingleThreadExecutor()) {
      Future<RankRange> ranks = thread.submit(() -> one.join(messages::add));
      Until.holds(() -> shared.check(List.of("tutti-run/node/1")));
      try (LaunchRendezvous twin = rendezvous(plan(1, 1, 0, "true"), shared.duplicate())) {
        assertThatThrownBy(() -> twin.join(messages::add))
            .hasMessage("another launcher has already joined as node 1");
      }
      StoreRendezvous zero = rendezvous(plan(0, 2, 0, "true"), shared.duplicate());
      assertThat(zero.join(messages::add)).isEqualTo(new RankRange(0, 3, "node-zero", 29501));
      assertThat(ranks.get(4, TimeUnit.MINUTES)).isEqualTo(new RankRange(2, 3, "node-zero", 29501));
    }
    assertThat(shared.check(List.of("tutti-run/left/1"))).isFalse();
  }

  @Test
  void nodesThatStartAgainAnotherNumberOfTimesAreToldSo() throws Exception {
    String message =
        "node 0 was started with --max-restarts=1, node 1 with --max-restarts=2; give all nodes the"
            + " same value";
    StoreRendezvous one = rendezvous(plan(1, 1, 2, "true"), shared.duplicate());
    try (ExecutorService thread = Executors.newSingleThreadExecutor()) {
      Future<RankRange> ranks = thread.submit(() -> one.join(messages::add));
      Until.holds(() -> shared.check(List.of("tutti-run/node/1")));
      List<Duration> waits = new CopyOnWriteArrayList<>();
      Store impatient =
          PlayedStore.of(
              shared.duplicate(),
              (method, arguments, _) -> {
                if (method.equals("await")) {
                  waits.add((Duration) arguments[1]);
                  throw new StoreTimeoutException("as if that time had passed");
                }
              });
      StoreRendezvous zero = rendezvous(plan(0, 2, 1, "true"), impatient);
      assertThatThrownBy(() -> zero.join(messages::add))
          .isInstanceOf(LaunchException.class)
          .hasMessage(message);
      assertThatThrownBy(() -> ranks.get(4, TimeUnit.MINUTES))
          .hasCauseInstanceOf(LaunchException.class)
          .cause()
          .hasMessage(message);
      // Node 1 has not left, and a slow one must still be notified why the job does not start.
      zero.close();
      assertThat(waits).containsExactly(Duration.ofSeconds(10));
    }
  }

  @Test
  void aNodeThatDoesNotComeAfterAllEndsThoseThatStartedTheirRanks() throws Exception {
    LaunchPlan plan = plan(0, 1, 0, "exec sleep 600");
    StoreRendezvous one = rendezvous(plan(1, 1, 0, "true"), shared.duplicate());
    try (ExecutorService thread = Executors.newSingleThreadExecutor()) {
      StoreRendezvous zero = rendezvous(plan, shared.duplicate());
      Future<Integer> code = start(thread, launcher(plan, zero), zero);
      assertThat(one.join(_ -> {}).worldSize()).isEqualTo(2);
      one.refuse(
          new LaunchRendezvous.Verdict(
              LaunchRendezvous.Verdict.Kind.STOPPED, 1, -1, 130, "stopped"));
      one.close();
      assertThat(code.get(4, TimeUnit.MINUTES)).isEqualTo(130);
    }
    assertThat(messages).containsExactly("0: stopped");
    assertThat(TestPlans.processesOf(runId)).isEmpty();
  }

  @Test
  void saysWhoDidNotComeInTheWholeTime() {
    LaunchPlan hasty = planOf(4, 1, 1, 0, Duration.ofMillis(120), "sh", "-c", "true");
    shared.set("tutti-run/node/2", "1");
    StoreRendezvous rendezvous = rendezvous(hasty, shared.duplicate());
    assertThatThrownBy(() -> rendezvous.join(messages::add))
        .isInstanceOf(LaunchException.class)
        .hasMessage(
            "nodes 0, 3 of 4 did not join at node-zero:29501 within 120 ms (--rdzv-timeout of node"
                + " 1); check that each was started with the same --nnodes and its own"
                + " --node-rank, and can reach that address; another job, or a job of a single"
                + " node, may be using it");
  }

  @Test
  void saysWhichNodeDidNotStopItsRanks() {
    shared.set("tutti-run/node/1", "1");
    StoreRendezvous zero = rendezvous(plan(0, 1, 1, "true"), shared.duplicate());
    assertThat(zero.join(messages::add).worldSize()).isEqualTo(2);
    assertThatThrownBy(() -> zero.awaitStopped(0, Duration.ofMillis(20)))
        .isInstanceOf(LaunchException.class)
        .hasMessage("node 1 did not stop all ranks within 20 ms");
  }

  @Test
  void refusesANodeThatComesTwice() throws Exception {
    try (HashStore shared = new HashStore()) {
      LaunchPlan plan = plan(1, 1, 0, "true");
      StoreRendezvous first =
          new StoreRendezvous(plan, shared.duplicate(), 1, this::clear, () -> {});
      StoreRendezvous second =
          new StoreRendezvous(plan, shared.duplicate(), 1, this::clear, () -> {});
      shared.set("tutti-run/node/0", "2");
      assertThat(first.join(_ -> {})).isEqualTo(new RankRange(2, 3, "node-zero", 1));
      assertThatThrownBy(() -> second.join(_ -> {}))
          .isInstanceOf(LaunchException.class)
          .hasMessage("another launcher has already joined as node 1");
    }
  }

  @Test
  void endsTheRanksWhenTheStoreIsLost() throws Exception {
    Store shared = new HashStore();
    Store mine = shared.duplicate();
    LaunchPlan plan = plan(1, 1, 5, "echo ready; exec sleep 600");
    shared.set("tutti-run/node/0", "1");
    try (ExecutorService thread = Executors.newSingleThreadExecutor()) {
      LosableStore losable = new LosableStore(mine);
      Future<Integer> code =
          thread.submit(
              () -> {
                try (LaunchRendezvous rendezvous =
                    new StoreRendezvous(
                        plan,
                        losable.store(),
                        1,
                        this::clear,
                        () -> {},
                        Duration.ofMinutes(5), // node 0 sends no heartbeat at all
                        Duration.ofSeconds(5))) {
                  return launcher(plan, rendezvous).run();
                }
              });
      output.await(lines -> lines.size() == 1);
      losable.lose();
      assertThat(code.get(4, TimeUnit.MINUTES)).isEqualTo(1);
    }
    assertThat(messages).hasSize(1);
    assertThat(messages.getFirst()).startsWith("1: lost the store of node 0: ");
    assertThat(TestPlans.processesOf(runId)).isEmpty();
  }

  @Test
  void endsTheRanksWhenAnotherLauncherIsGone() throws Exception {
    LaunchPlan plan = plan(0, 1, 5, "exec sleep 600");
    try (HashStore shared = new HashStore();
        ExecutorService thread = Executors.newSingleThreadExecutor()) {
      Store store = shared.duplicate();
      // Node 1 arrives, and never answers again.
      shared.set("tutti-run/node/1", "1");
      Future<Integer> code =
          thread.submit(
              () -> {
                try (LaunchRendezvous rendezvous =
                    new StoreRendezvous(
                        plan,
                        store,
                        1,
                        this::clear,
                        () -> {},
                        Duration.ofSeconds(1),
                        Duration.ofMillis(50))) {
                  return launcher(plan, rendezvous).run();
                }
              });
      shared.await(List.of("tutti-run/alive/0", "tutti-run/0/verdict"), Duration.ofMinutes(4));
      // Node 1 leaves late, so that node 0 need not wait for it to the end.
      shared.set("tutti-run/left/1", "1");
      assertThat(code.get(4, TimeUnit.MINUTES)).isEqualTo(1);
    }
    assertThat(messages).containsExactly("0: the launcher of node 1 has sent no heartbeat for 1 s");
    assertThat(TestPlans.processesOf(runId)).isEmpty();
  }
}
