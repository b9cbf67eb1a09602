package dev.tutti.cli.run;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.cli.run.LaunchRendezvous.Verdict;
import dev.tutti.cli.run.LaunchRendezvous.Verdict.Kind;
import java.util.ArrayList;
import java.util.List;
import java.util.SplittableRandom;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

/** Tests which entries of the log of nodes count, and what they say together. */
class NodeRosterTest {
  private final NodeRoster roster = new NodeRoster(2);

  private static NodeEvent came(int node, String launcher, int ranks) {
    return new NodeEvent.Came(node, launcher, ranks, "host" + node);
  }

  private static NodeEvent gone(int node, String launcher) {
    return new NodeEvent.Gone(node, launcher, "it left");
  }

  private void begin() {
    assertThat(roster.apply(came(1, "b", 3))).isTrue();
    assertThat(roster.apply(came(0, "a", 2))).isTrue();
  }

  private int firstRankOf(int node) {
    return roster.at(node).orElseThrow().firstRank();
  }

  @Test
  void theJobBeginsWithTheFewestNodesAndNumbersTheirRanksByNode() {
    assertThat(roster.apply(came(1, "b", 3))).isTrue();
    assertThat(roster.hasBegun()).isFalse();
    assertThat(firstRankOf(1)).isEqualTo(-1);
    assertThat(roster.apply(came(0, "a", 2))).isTrue();
    assertThat(roster.hasBegun()).isTrue();
    assertThat(roster.firstRanks()).isEqualTo(5);
    assertThat(firstRankOf(0)).isZero();
    assertThat(firstRankOf(1)).isEqualTo(2);
    assertThat(roster.at(0)).contains(new NodeMember("a", 2, "host0", 0, false, false));
  }

  @Test
  void whoComesLaterJoinsWithRanksThatNobodyHad() {
    begin();
    assertThat(roster.apply(gone(1, "b"))).isTrue();
    assertThat(roster.apply(came(1, "c", 3))).isTrue();
    assertThat(roster.at(1)).contains(new NodeMember("c", 3, "host1", 5, true, false));
    assertThat(roster.apply(came(7, "d", 1))).isTrue();
    assertThat(firstRankOf(7)).isEqualTo(8);
    assertThat(roster.firstRanks()).isEqualTo(5);
    assertThat(roster.launchers()).containsExactlyInAnyOrder("a", "c", "d");
    assertThat(roster.nodeOf("d")).contains(7);
    assertThat(roster.nodeOf("b")).isEmpty();
  }

  @Test
  void whoLeavesBeforeTheJobBeginsDoesNotCountForIt() {
    assertThat(roster.apply(came(0, "a", 2))).isTrue();
    assertThat(roster.apply(gone(0, "a"))).isTrue();
    assertThat(roster.verdict()).isEmpty();
    assertThat(roster.apply(came(1, "b", 3))).isTrue();
    assertThat(roster.hasBegun()).isFalse();
    assertThat(roster.apply(came(2, "c", 1))).isTrue();
    assertThat(roster.firstRanks()).isEqualTo(4);
  }

  @Test
  void aNumberIsTakenUntilItsNodeIsGone() {
    begin();
    assertThat(roster.apply(came(1, "c", 3))).isFalse();
    assertThat(roster.has(1, "b")).isTrue();
    assertThat(roster.apply(gone(1, "c"))).isFalse();
    assertThat(roster.apply(new NodeEvent.Done(1, "c"))).isFalse();
    assertThat(roster.apply(gone(1, "b"))).isTrue();
    assertThat(roster.apply(gone(1, "b"))).isFalse();
    assertThat(roster.apply(came(1, "c", 3))).isTrue();
    assertThat(roster.has(1, "b")).isFalse();
  }

  @Test
  void aJobIsShortWhileFewerNodesThanItNeedsAreLeft() {
    assertThat(roster.isShort()).isFalse();
    begin();
    assertThat(roster.isShort()).isFalse();
    assertThat(roster.apply(gone(0, "a"))).isTrue();
    assertThat(roster.isShort()).isTrue();
    assertThat(roster.apply(came(0, "c", 2))).isTrue();
    assertThat(roster.isShort()).isFalse();
  }

  @Test
  void aJobSucceedsOnceAllNodesThatAreLeftAreDone() {
    begin();
    assertThat(roster.apply(new NodeEvent.Done(1, "b"))).isTrue();
    assertThat(roster.hasDone()).isTrue();
    assertThat(roster.apply(came(2, "c", 1))).as("it comes to a job that ends").isFalse();
    assertThat(roster.verdict()).isEmpty();
    assertThat(roster.apply(gone(0, "a"))).isTrue();
    assertThat(roster.verdict()).contains(new Verdict(Kind.SUCCESS, 0, -1, 0, ""));
    assertThat(roster.isShort()).isFalse();
  }

  @Test
  void aJobWithoutNodesIsOver() {
    begin();
    assertThat(roster.apply(gone(0, "a"))).isTrue();
    assertThat(roster.apply(gone(1, "b"))).isTrue();
    assertThat(roster.verdict()).contains(Verdict.stopped(1, "no node is left"));
  }

  @Test
  void theFirstVerdictCountsAndNodesMayOnlyLeaveAfterIt() {
    begin();
    Verdict failed = new Verdict(Kind.FAILED, 1, 3, 7, "rank 3 exited with 7");
    assertThat(roster.apply(new NodeEvent.Ended(failed))).isTrue();
    assertThat(roster.apply(new NodeEvent.Ended(Verdict.stopped(0, "SIGTERM")))).isFalse();
    assertThat(roster.apply(came(2, "c", 1))).isFalse();
    assertThat(roster.apply(new NodeEvent.Done(0, "a"))).isFalse();
    assertThat(roster.apply(gone(0, "a"))).isTrue();
    assertThat(roster.apply(gone(1, "b"))).isTrue();
    assertThat(roster.verdict()).contains(failed);
    assertThat(roster.nodes()).isEmpty();
  }

  /** Applies entries in any order, and checks what must hold after each. */
  @Test
  void ranksOfTwoNodesAreNeverTheSame() {
    for (long seed = 0; seed < 1000; seed++) {
      SplittableRandom random = new SplittableRandom(seed);
      NodeRoster any = new NodeRoster(1 + random.nextInt(3));
      List<Integer> given = new ArrayList<>();
      for (int entry = 0; entry < 30; entry++) {
        int node = random.nextInt(4);
        String launcher = "launcher" + random.nextInt(6);
        NodeEvent event =
            random.nextInt(3) > 0
                ? came(node, launcher, 1 + random.nextInt(3))
                : gone(node, launcher);
        boolean hadBegun = any.hasBegun();
        boolean counts = any.apply(event);
        if (counts && event instanceof NodeEvent.Came && any.hasBegun()) {
          for (int each : hadBegun ? List.of(node) : List.copyOf(any.nodes())) {
            NodeMember member = any.at(each).orElseThrow();
            for (int rank = 0; rank < member.ranks(); rank++) {
              assertThat(given).as("seed %d", seed).doesNotContain(member.firstRank() + rank);
              given.add(member.firstRank() + rank);
            }
          }
        }
        assertThat(any.hasBegun() || !hadBegun).as("seed %d", seed).isTrue();
      }
      assertThat(given.stream().sorted().toList())
          .as("seed %d", seed)
          .isEqualTo(IntStream.range(0, given.size()).boxed().toList());
    }
  }
}
