package dev.tutti.runtime.failure;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.tuple;

import dev.tutti.runtime.failure.FailureEvent.Kind;
import dev.tutti.runtime.failure.JoinedGroups.Member;
import dev.tutti.runtime.operation.RankProgress;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

/** Tests which failures a group hears of, as rank 3 among all. */
class JoinedGroupsTest {
  private final JoinedGroups groups = new JoinedGroups();
  private final List<FailureEvent> heard = new ArrayList<>();

  private void join(String group, Integer... globalRanks) {
    groups.add(
        group, new Member(List.of(globalRanks), heard::add, () -> RankProgress.ofSetUp(group)));
  }

  private static FailureEvent failure(String group, int rank, String message) {
    return FailureEvent.outside(group, Kind.FAILED, rank, rank, message);
  }

  @Test
  void theFirstFailureOfAGroupCounts() {
    join("a", 2, 3);
    join("b", 3, 4);
    FailureEvent first = failure("a", 0, "first");
    assertThat(groups.accept(first)).isSameAs(first);
    assertThat(groups.accept(failure("a", 1, "second"))).isSameAs(first);
    FailureEvent other = failure("b", 1, "other");
    assertThat(groups.accept(other)).isSameAs(other);
    assertThat(heard).containsExactly(first, other);
    assertThat(groups.firstFailure("a")).isSameAs(first);
  }

  @Test
  void aGroupHearsOfAFailureThatCameBeforeIt() {
    FailureEvent early = failure("a", 0, "early");
    groups.accept(early);
    assertThat(heard).isEmpty();
    join("a", 2, 3);
    assertThat(heard).containsExactly(early);
    groups.remove("a");
    groups.accept(failure("a", 0, "late"));
    assertThat(heard).containsExactly(early);
  }

  @Test
  void theLossOfARankFailsItsGroupsAlsoThoseThatComeLater() {
    join("a", 3, 5);
    join("b", 3, 4);
    groups.accept(FailureEvent.lost(5));
    join("c", 1, 3, 5);
    join("d", 1, 3);
    assertThat(heard)
        .extracting(FailureEvent::group, FailureEvent::kind, FailureEvent::failedRank)
        .containsExactly(tuple("a", Kind.PEER_LOST, 1), tuple("c", Kind.PEER_LOST, 2));
  }

  @Test
  void ranksAreNumberedInEachGroup() {
    join("a", 2, 3);
    assertThat(groups.rankIn("a", 3)).isEqualTo(1);
    assertThat(groups.rankIn("a", 5)).isEqualTo(-1);
    assertThat(groups.rankIn("b", 3)).isEqualTo(-1);
  }
}
