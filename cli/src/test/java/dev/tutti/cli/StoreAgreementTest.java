package dev.tutti.cli;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.tutti.Store;
import dev.tutti.store.HashStore;
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
import org.junit.jupiter.api.Test;

class StoreAgreementTest {
  private final RecordedOutput output = new RecordedOutput();
  private final List<String> messages = new CopyOnWriteArrayList<>();
  private final String runId = UUID.randomUUID().toString();
  private final Store shared = new HashStore();

  private LaunchPlan plan(int node, int localSize, int maxRestarts, String script) {
    LaunchPlan base = TestPlans.of(localSize, maxRestarts, Optional.empty(), "sh", "-c", script);
    return new LaunchPlan(
        base.command(),
        localSize,
        2,
        node,
        "node-zero",
        29500,
        maxRestarts,
        runId,
        base.role(),
        base.logDirectory(),
        base.tailLines(),
        base.grace(),
        Duration.ofSeconds(30),
        base.environment(),
        Optional.empty());
  }

  private Launcher launcher(LaunchPlan plan, Agreement agreement) {
    return new Launcher(
        plan, agreement, output, message -> messages.add(plan.nodeRank() + ": " + message));
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
            try (Agreement agreement = new StoreAgreement(plan, store, 29501, () -> {})) {
              return launcher(plan, agreement).run();
            }
          });
    }
    List<Integer> codes = new ArrayList<>();
    try (ExecutorService threads = Executors.newFixedThreadPool(2)) {
      for (Future<Integer> code : threads.invokeAll(nodes, 60, TimeUnit.SECONDS)) {
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
    // The first attempt may end before these came to print anything.
    assertThat(output.out(0)).endsWith("1").isSubsetOf("0", "1");
    assertThat(output.out(1)).endsWith("1").isSubsetOf("0", "1");
    assertThat(shared.listKeys()).isNotEmpty().allMatch(key -> key.startsWith("tutti-run/"));
  }

  @Test
  void waitsForTheRanksOfOtherNodes() throws Exception {
    // Node 0 is done at once and must still hear of the failure on node 1.
    assertThat(runNodes(0, "[ $RANK = 2 ] || exit 0; sleep 0.5; exit 3")).containsExactly(3, 3);
  }

  @Test
  void refusesANodeThatComesTwice() throws Exception {
    try (HashStore shared = new HashStore()) {
      LaunchPlan plan = plan(1, 1, 0, "true");
      StoreAgreement first = new StoreAgreement(plan, shared.duplicate(), 1, () -> {});
      StoreAgreement second = new StoreAgreement(plan, shared.duplicate(), 1, () -> {});
      shared.set("tutti-run/node/0", "2");
      assertThat(first.join()).isEqualTo(new Cohort(2, 3, "node-zero", 1));
      assertThatThrownBy(second::join)
          .isInstanceOf(LaunchException.class)
          .hasMessage("another launcher already joined as node 1");
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
                try (Agreement agreement = new StoreAgreement(plan, losable.store(), 1, () -> {})) {
                  return launcher(plan, agreement).run();
                }
              });
      output.await(lines -> lines.size() == 1);
      losable.lose();
      assertThat(code.get(30, TimeUnit.SECONDS)).isEqualTo(1);
    }
    assertThat(messages).hasSize(1);
    assertThat(messages.getFirst()).startsWith("1: the store of node 0 is lost: ");
    assertThat(TestPlans.processesOf(runId)).isEmpty();
  }

  @Test
  void endsTheRanksWhenAnotherLauncherIsGone() throws Exception {
    LaunchPlan plan = plan(0, 1, 5, "exec sleep 600");
    try (HashStore shared = new HashStore();
        ExecutorService thread = Executors.newSingleThreadExecutor()) {
      Store store = shared.duplicate();
      // Node 1 comes, and no more is heard of it.
      shared.set("tutti-run/node/1", "1");
      Future<Integer> code =
          thread.submit(
              () -> {
                try (Agreement agreement =
                    new StoreAgreement(
                        plan, store, 1, () -> {}, Duration.ofSeconds(1), Duration.ofMillis(50))) {
                  return launcher(plan, agreement).run();
                }
              });
      shared.wait(List.of("tutti-run/alive/0", "tutti-run/0/verdict"), Duration.ofSeconds(30));
      // It leaves late, so that node 0 need not wait for it to the end.
      assertThat(shared.add("tutti-run/left", 1)).isBetween(1L, 2L);
      shared.set("tutti-run/all-left", "1");
      assertThat(code.get(30, TimeUnit.SECONDS)).isEqualTo(1);
    }
    assertThat(messages).containsExactly("0: the launcher of node 1 gave no sign of life for 1 s");
    assertThat(TestPlans.processesOf(runId)).isEmpty();
  }
}
