package dev.tutti.runtime.membership;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;

import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

class ChangePlanTest {
  private static final Rules ANY = new Rules(1, 9, 0, 9, 1000);

  private static Ready unreached(Integer... members) {
    return new Ready(new TreeSet<>(), new TreeSet<>(List.of(members)));
  }

  @Test
  void readyMembersStayAndOthersAreLeftOutWithTheReason() {
    ChangePlan plan =
        ChangePlan.choose(
            List.of(0, 1, 2), Map.of(1, Ready.PLAIN), Set.of(2), List.of("a", "b"), ANY);
    assertThat(plan.leftOut()).isEqualTo(Map.of(0, "it did not come in time", 2, "it is lost"));
    assertThat(plan.joined()).containsExactly("a", "b");
    assertThat(plan.sizeAfter(3)).isEqualTo(3);
  }

  @Test
  void theMemberThatMostDoNotReachIsLeftOut() {
    Map<Integer, Ready> ready =
        Map.of(0, unreached(1), 1, Ready.PLAIN, 2, Ready.PLAIN, 3, unreached(1));
    ChangePlan plan = ChangePlan.choose(List.of(0, 1, 2, 3), ready, Set.of(), List.of(), ANY);
    assertThat(plan.leftOut()).containsOnlyKeys(1);
  }

  @Test
  void ofTwoThatDoNotReachEachOtherTheLaterIsLeftOut() {
    Map<Integer, Ready> ready = Map.of(0, unreached(2), 1, Ready.PLAIN, 2, Ready.PLAIN);
    ChangePlan plan = ChangePlan.choose(List.of(0, 1, 2), ready, Set.of(), List.of(), ANY);
    assertThat(plan.leftOut())
        .isEqualTo(Map.of(2, "it and another member do not reach each other"));
  }

  private static List<Integer> stayOfParts(List<Integer> one, List<Integer> other) {
    Map<Integer, Ready> ready = new TreeMap<>();
    one.forEach(each -> ready.put(each, unreached(other.toArray(Integer[]::new))));
    other.forEach(each -> ready.put(each, unreached(one.toArray(Integer[]::new))));
    List<Integer> members = List.copyOf(ready.keySet());
    ChangePlan plan = ChangePlan.choose(members, ready, Set.of(), List.of(), ANY);
    return members.stream().filter(each -> !plan.leftOut().containsKey(each)).toList();
  }

  @Test
  void ofPartsThatDoNotReachEachOtherTheLargerStaysAndOfHalvesTheFirst() {
    assertThat(stayOfParts(List.of(0, 2), List.of(1, 3, 4))).containsExactly(1, 3, 4);
    assertThat(stayOfParts(List.of(2, 3), List.of(0, 1))).containsExactly(0, 1);
  }

  @Test
  void noMoreStayOrJoinThanThereIsRoomFor() {
    Map<Integer, Ready> ready = Map.of(0, Ready.PLAIN, 1, Ready.PLAIN, 2, Ready.PLAIN);
    List<Integer> members = List.of(0, 1, 2);
    ChangePlan two =
        ChangePlan.choose(members, ready, Set.of(), List.of("a"), new Rules(1, 2, 0, 9, 1));
    assertThat(two.leftOut()).isEqualTo(Map.of(2, "there is room for 2 members only"));
    assertThat(two.joined()).isEmpty();
    ChangePlan four =
        ChangePlan.choose(members, ready, Set.of(), List.of("a", "b"), new Rules(1, 4, 0, 9, 1));
    assertThat(four.joined()).containsExactly("a");
    ChangePlan none =
        ChangePlan.choose(members, ready, Set.of(), List.of("a"), new Rules(1, 9, 0, 0, 1));
    assertThat(none.joined()).isEmpty();
  }

  static Stream<MembershipEntry> entries() {
    TreeMap<Integer, String> leftOut = new TreeMap<>(Map.of(3, "it is lost", 1, "why: not"));
    return Stream.of(
        new MembershipEntry.Waiting("a1"),
        new MembershipEntry.Withdrawn("a1"),
        new MembershipEntry.Change(0, 2, 3, ANY),
        new MembershipEntry.Generation(7, 0, 2, new ChangePlan(leftOut, List.of("a1", "b2"))),
        new MembershipEntry.Generation(7, 0, 2, new ChangePlan(new TreeMap<>(), List.of())),
        new MembershipEntry.Abandoned(7, 1, "0 instead of 1 processes came to join"));
  }

  @ParameterizedTest
  @MethodSource("entries")
  void entriesAreReadAsTheyAreWritten(MembershipEntry entry) {
    assertThat(MembershipEntry.decode(entry.encode())).isEqualTo(entry);
  }

  @Test
  void readyMembersAreReadAsTheyAreWritten() {
    Ready ready = new Ready(new TreeSet<>(Set.of(1, 5)), new TreeSet<>(Set.of(2)));
    assertThat(Ready.decode(ready.encode())).isEqualTo(ready);
    assertThat(Ready.decode(Ready.PLAIN.encode())).isEqualTo(Ready.PLAIN);
    byte[] bad = "1".getBytes(StandardCharsets.UTF_8);
    assertThatIllegalArgumentException().isThrownBy(() -> Ready.decode(bad));
  }

  @Test
  void otherEntriesAreNotOfMembers() {
    assertThat(MembershipEntry.decode(new byte[0])).isNull();
    assertThat(MembershipEntry.decode("0\nFAILED".getBytes(StandardCharsets.UTF_8))).isNull();
    assertThat(MembershipEntry.decode(new byte[] {4, 'Z'})).isNull();
    assertThatIllegalArgumentException()
        .isThrownBy(() -> MembershipEntry.decode(new byte[] {4, 'C'}));
  }
}
