package dev.tutti.runtime.failure;

import dev.tutti.runtime.operation.RankProgress;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.StringJoiner;
import java.util.function.Consumer;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * The groups that a rank is in, and the first failure of each group.
 *
 * <p>Not thread-safe: the owner's lock keeps the failures in the order of the log.
 */
final class JoinedGroups {
  private final Map<String, Member> members = new HashMap<>();
  private final List<FailureEvent> lost = new ArrayList<>();
  private final Map<String, FailureEvent> first = new HashMap<>();

  /**
   * A group that this rank is in.
   *
   * @param globalRanks for each rank of the group, its rank among all ranks
   * @param consumer receives the first failure of the group
   * @param standing reports where this rank stands
   */
  record Member(
      List<Integer> globalRanks,
      Consumer<FailureEvent> consumer,
      Supplier<RankProgress> standing) {}

  /** Adds a group, or replaces it, and delivers a failure that came earlier. */
  void add(String group, Member member) {
    members.put(group, member);
    for (FailureEvent gone : lost) {
      FailureEvent inGroup = gone.inGroup(group, member.globalRanks());
      if (inGroup != null) {
        first.putIfAbsent(group, inGroup);
      }
    }
    FailureEvent event = first.get(group);
    if (event != null) {
      member.consumer().accept(event);
    }
  }

  void remove(String group) {
    members.remove(group);
  }

  boolean contains(String group) {
    return members.containsKey(group);
  }

  /** Returns a copy, which may be used without the lock. */
  Map<String, Member> copy() {
    return Map.copyOf(members);
  }

  @Nullable FailureEvent firstFailure(String group) {
    return first.get(group);
  }

  /** Returns a rank in a group, given its rank among all; -1 if it is not in a known group. */
  int rankIn(String group, int globalRank) {
    Member member = members.get(group);
    return member == null ? -1 : member.globalRanks().indexOf(globalRank);
  }

  /** Delivers a failure unless it is not the first of its group, and returns the first. */
  FailureEvent accept(FailureEvent event) {
    if (event.isOfAllGroups()) {
      lost.add(event);
      copy()
          .forEach(
              (name, member) -> {
                FailureEvent inGroup = event.inGroup(name, member.globalRanks());
                if (inGroup != null) {
                  accept(inGroup);
                }
              });
      return event;
    }
    FailureEvent earlier = first.putIfAbsent(event.group(), event);
    if (earlier != null) {
      return earlier;
    }
    Member member = members.get(event.group());
    if (member != null) {
      member.consumer().accept(event);
    }
    return event;
  }

  /**
   * Returns where this rank stands in one of its groups, and in what it waits in the others.
   *
   * @param all a copy of the groups
   */
  static RankProgress standing(Member member, String group, Map<String, Member> all) {
    RankProgress standing = member.standing().get();
    StringJoiner elsewhere = new StringJoiner(", ");
    all.forEach(
        (name, other) -> {
          RankProgress there = name.equals(group) ? null : other.standing().get();
          if (there != null && !there.pending().isEmpty()) {
            String what = there.nextWait(Set.of()).describe();
            elsewhere.add("in group " + name + " it waits in " + what);
          }
        });
    if (!standing.elsewhere().isEmpty()) {
      elsewhere.add(standing.elsewhere());
    }
    return standing.with(elsewhere.toString());
  }
}
