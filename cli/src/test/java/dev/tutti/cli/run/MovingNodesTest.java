package dev.tutti.cli.run;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.tutti.Store;
import dev.tutti.cli.process.LaunchException;
import dev.tutti.cli.process.Posix;
import dev.tutti.cli.run.LaunchRendezvous.Verdict;
import dev.tutti.cli.run.LaunchRendezvous.Verdict.Kind;
import dev.tutti.runtime.failure.RankClaim;
import dev.tutti.shared.Until;
import dev.tutti.spi.ForwardingTime;
import dev.tutti.spi.Time;
import dev.tutti.store.HashStore;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Tests how launchers agree whose nodes come and go; the clock moves when a test says so. */
@Timeout(300)
class MovingNodesTest {
  private static final Duration SILENCE = Duration.ofMinutes(1);
  private static final Duration INTERVAL = Duration.ofMillis(5);
  private static final NodeRange TWO_TO_FOUR = new NodeRange(2, 4, Optional.empty());

  private final Store shared = new HashStore();
  private final AtomicLong clock = new AtomicLong();
  private final List<Node> started = new ArrayList<>();

  /** The launcher of a node, which serves the store if it is node 0. */
  private final class Node {
    final int number;
    final LosableStore store = new LosableStore(shared.duplicate());
    final List<String> messages = new CopyOnWriteArrayList<>();
    final CompletableFuture<Verdict> end = new CompletableFuture<>();
    final CompletableFuture<RankRange> place;
    final MovingNodes nodes;
    final String alive;

    Node(int number, NodeRange range) {
      this.number = number;
      LaunchPlan plan = plan(number, range);
      Time time =
          new ForwardingTime(Time.SYSTEM) {
            @Override
            public long nanoTime() {
              return clock.get();
            }
          };
      RankRange at = new RankRange(0, 0, "node-zero", 29500);
      List<String> before = alive();
      nodes =
          new MovingNodes(
              plan, range, store.store(), at, number == 0, () -> {}, SILENCE, INTERVAL, time);
      place =
          CompletableFuture.supplyAsync(
              () -> {
                RankRange ranks = nodes.join(messages::add);
                nodes.begin(0, end::complete);
                return ranks;
              },
              task -> Thread.ofPlatform().daemon().start(task));
      Until.holds(() -> alive().size() > before.size() || place.isCompletedExceptionally());
      List<String> after = new ArrayList<>(alive());
      after.removeAll(before);
      alive = after.isEmpty() ? "" : after.getFirst();
    }

    long beats() {
      return shared.add(alive, 0);
    }

    RankRange joins(int firstRank, int worldSize) {
      return new RankRange(firstRank, worldSize, "node-zero", 29500, true);
    }

    void propose(Kind kind, int code, String text) {
      nodes.propose(0, new Verdict(kind, number, -1, code, text));
    }
  }

  private static LaunchPlan plan(int node, NodeRange range) {
    LaunchPlan base = TestPlans.of(node + 1, 3, Optional.empty(), "true");
    return new LaunchPlan(
        base.command(),
        node + 1,
        range.most(),
        node,
        "node-zero",
        29500,
        base.maxRestarts(),
        base.runId(),
        base.role(),
        base.logDirectory(),
        base.tailLines(),
        base.linger(),
        base.grace(),
        Duration.ofMinutes(10),
        base.environment(),
        base.aotCache(),
        true,
        Optional.of(range));
  }

  private List<String> alive() {
    return shared.listKeys().stream().filter(key -> key.startsWith("tutti-run/alive/")).toList();
  }

  /** Starts a node and waits until it is in the log of the nodes, as the entry of a number. */
  private Node start(int number, int entry) {
    Node node = new Node(number, TWO_TO_FOUR);
    started.add(node);
    awaitEntry(entry);
    return node;
  }

  private void awaitEntry(int entry) {
    Until.holds(() -> shared.check("tutti-run/nodes/" + entry));
  }

  /**
   * Lets time pass; launchers that live have a look at each other in its course. They may see the
   * last beat of one that does not only after the first step.
   */
  private void pass(Duration time, Node... living) {
    long step = SILENCE.toNanos() / 2 + 1;
    for (long passed = 0; passed <= time.toNanos(); passed += step) {
      clock.addAndGet(step);
      for (int round = 0; round < 2; round++) {
        for (Node node : living) {
          long before = node.beats();
          Until.holds(() -> node.beats() >= before + 2 || node.end.isDone());
        }
      }
    }
  }

  @AfterEach
  void close() {
    started.reversed().forEach(node -> node.nodes.close());
  }

  private static void assertFails(Node node, int code, String message) {
    assertThatThrownBy(node.place::join)
        .isInstanceOf(CompletionException.class)
        .cause()
        .isInstanceOfSatisfying(
            LaunchException.class, e -> assertThat(e.exitCode()).isEqualTo(code))
        .hasMessage(message);
  }

  @Test
  void theJobBeginsWithTheFewestNodesAndOthersJoin() {
    Node zero = start(0, 1);
    Node three = start(3, 2);
    assertThat(zero.place.join()).isEqualTo(new RankRange(0, 5, "node-zero", 29500));
    assertThat(three.place.join()).isEqualTo(new RankRange(1, 5, "node-zero", 29500));
    Node one = start(1, 3);
    assertThat(one.place.join()).isEqualTo(one.joins(5, 5));
    Until.holds(() -> zero.messages.contains("node 1 joins with 2 ranks"));
    zero.propose(Kind.SUCCESS, 0, "");
    three.propose(Kind.SUCCESS, 0, "");
    assertThat(zero.end).isNotDone();
    Node late = new Node(2, TWO_TO_FOUR);
    assertFails(late, 1, "the job is about to end: a node has done its work");
    one.propose(Kind.SUCCESS, 0, "");
    for (Node node : List.of(zero, three, one)) {
      assertThat(node.end.join().kind()).isEqualTo(Kind.SUCCESS);
    }
    assertFails(new Node(2, TWO_TO_FOUR), 1, "the job has ended: all ranks succeeded");
  }

  @Test
  void aRequestToScaleIsRefused() {
    Node zero = start(0, 1);
    Node one = start(1, 2);
    zero.place.join();
    assertThat(one.nodes.watchScaling((_, _) -> {})).isNull();
    assertThatThrownBy(() -> Scaling.request(shared, 4, SILENCE))
        .isInstanceOf(LaunchException.class)
        .hasMessage(
            "the nodes of this job come and go: start a launcher on a further node to add its"
                + " ranks, or end one with SIGTERM to remove them");
    zero.store.lose();
    assertThat(zero.nodes.watchScaling((_, _) -> {})).isNull();
  }

  @Test
  void othersGoOnWithoutANodeThatIsLostAndItsRanksAreReported() {
    Node zero = start(0, 1);
    Node one = start(1, 2);
    Node two = start(2, 3);
    two.place.join();
    two.nodes.started(4711);
    shared.set("tutti/0/joined/7", "process 4711 on " + RankClaim.host() + ", ff");
    shared.set("tutti/0/joined/8", "process 4711 on another, ff");
    shared.set("tutti/0/joined/9", "process 4712 on " + RankClaim.host() + ", ff");
    two.store.lose();
    pass(SILENCE.multipliedBy(2), zero, one);
    String said =
        "node 2 is gone: its launcher has sent no heartbeat for 1 min; the job continues with 2"
            + " nodes";
    Until.holds(() -> zero.messages.contains(said) && one.messages.contains(said));
    assertThat(shared.getString("tutti/0/event/1")).contains("7");
    assertThat(shared.check("tutti/0/event/2")).isFalse();
    zero.propose(Kind.SUCCESS, 0, "");
    one.propose(Kind.SUCCESS, 0, "");
    assertThat(zero.end.join().kind()).isEqualTo(Kind.SUCCESS);
    assertThat(two.end.join().text()).startsWith("lost the store of the job: ");
  }

  @Test
  void anotherLauncherTakesTheNumberOfOneThatIsLost() {
    Node zero = start(0, 1);
    Node one = start(1, 2);
    assertThat(one.place.join().joins()).isFalse();
    Node second = new Node(1, TWO_TO_FOUR);
    assertFails(second, 1, "another launcher has already joined as node 1");
    one.store.lose();
    one.end.join();
    Node third = new Node(1, TWO_TO_FOUR);
    started.add(third);
    Until.holds(
        () ->
            third.messages.contains(
                "waiting for the launcher that was node 1 before to be given up"));
    pass(SILENCE.multipliedBy(2), zero, third);
    assertThat(third.place.join()).isEqualTo(third.joins(3, 3));
  }

  @Test
  void belowTheFewestNodesTheJobWaitsAndThenEnds() {
    Node zero = start(0, 1);
    Node one = start(1, 2);
    Node two = start(2, 3);
    two.place.join();
    one.propose(Kind.STOPPED, 143, "stopped by " + Posix.signalName(Posix.SIGTERM));
    assertThat(one.end.join().code()).isEqualTo(143);
    Until.holds(
        () ->
            zero.messages.contains(
                "node 1 is gone: stopped by SIGTERM; the job continues with 2 nodes"));
    two.propose(Kind.STOPPED, 143, "stopped by SIGTERM");
    Until.holds(
        () ->
            zero.messages.contains(
                "node 2 is gone: stopped by SIGTERM; 1 of at least 2 nodes are left: waiting up to"
                    + " 10 min (--rdzv-timeout) for others"));
    pass(Duration.ofMinutes(9), zero);
    assertThat(zero.end).isNotDone();
    Node three = start(3, 6);
    assertThat(three.place.join()).isEqualTo(three.joins(6, 3));
    Until.holds(() -> zero.messages.contains("node 3 joins with 4 ranks"));
    three.propose(Kind.STOPPED, 143, "stopped by SIGTERM");
    awaitEntry(7);
    pass(Duration.ofMinutes(11), zero);
    Verdict verdict = zero.end.join();
    assertThat(verdict.kind()).isEqualTo(Kind.STOPPED);
    assertThat(verdict.text())
        .isEqualTo(
            "fewer than the 2 nodes that --nnodes requires were left for 10 min"
                + " (--rdzv-timeout)");
  }

  @Test
  void aJobThatGetsTooFewNodesDoesNotBegin() {
    Node zero = start(0, 1);
    pass(Duration.ofMinutes(10));
    assertFails(
        zero, 1, "waited 10 min (--rdzv-timeout) for 1 of at least 2 nodes (--nnodes) to join");
    assertThat(zero.messages)
        .isSubsetOf(
            "waiting up to 10 min (--rdzv-timeout) for 1 of at least 2 nodes (--nnodes) to join");
  }

  @Test
  void aFailureEndsAllNodes() {
    Node zero = start(0, 1);
    Node one = start(1, 2);
    one.place.join();
    one.propose(Kind.FAILED, 3, "rank 1 ended with exit code 3");
    assertThat(zero.end.join().code()).isEqualTo(3);
    assertThat(one.end.join().code()).isEqualTo(3);
    assertFails(new Node(2, TWO_TO_FOUR), 3, "the job has ended: rank 1 ended with exit code 3");
  }

  @Test
  void theNodeThatServesTheStoreEndsAllWhenItIsStopped() {
    Node zero = start(0, 1);
    Node one = start(1, 2);
    zero.place.join();
    zero.propose(Kind.STOPPED, 130, "stopped by SIGINT");
    assertThat(one.end.join())
        .isEqualTo(new Verdict(Kind.STOPPED, 0, -1, 130, "stopped by SIGINT"));
  }

  @Test
  void aNodeThatOthersGaveUpEnds() {
    Node zero = start(0, 1);
    Node one = start(1, 2);
    one.place.join();
    String launcher = one.alive.substring("tutti-run/alive/".length());
    shared.set("tutti-run/nodes/3", new NodeEvent.Gone(1, launcher, "silent").encode());
    assertThat(one.end.join().text())
        .isEqualTo(
            "the other nodes went on without this one, since no heartbeat of this launcher came"
                + " for 1 min");
    assertThat(zero.end).isNotDone();
  }

  @Test
  void allNodesMustHaveTheSameRange() {
    Node zero = start(0, 1);
    Node other = new Node(1, new NodeRange(2, 3, Optional.empty()));
    assertFails(
        other,
        1,
        "node 0 was started with --nnodes=2:4, node 1 with --nnodes=2:3; give all nodes the same"
            + " value");
    assertThat(zero.place).isNotDone();
  }
}
