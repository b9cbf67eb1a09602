package dev.tutti.runtime.membership;

import java.util.ArrayList;
import java.util.Collection;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.SortedMap;
import java.util.SortedSet;
import java.util.TreeMap;
import java.util.TreeSet;

/**
 * The difference between a generation and the next one.
 *
 * @param leftOut the members that are left out, each with the reason
 * @param joined the names of those that join, in the order of their numbers
 */
public record ChangePlan(SortedMap<Integer, String> leftOut, List<String> joined) {
  /** Makes the collections immutable. */
  public ChangePlan {
    leftOut = Collections.unmodifiableSortedMap(new TreeMap<>(leftOut));
    joined = List.copyOf(joined);
  }

  /**
   * Chooses who continues: those that are ready and reach each other, and as many that join as
   * there is room for. Members keep their order, and those that join come last.
   *
   * @param members the members so far
   * @param ready what the ready ones say, by their numbers
   * @param gone the members that are known to be gone
   * @param waiting the names of those that are ready to join, in the order in which they came
   * @param rules what the change requires
   */
  static ChangePlan choose(
      Collection<Integer> members,
      Map<Integer, Ready> ready,
      Collection<Integer> gone,
      List<String> waiting,
      Rules rules) {
    SortedMap<Integer, String> leftOut = new TreeMap<>();
    SortedSet<Integer> stay = new TreeSet<>();
    for (int member : members) {
      if (ready.containsKey(member)) {
        stay.add(member);
      } else {
        leftOut.put(member, gone.contains(member) ? "it is lost" : "it did not come in time");
      }
    }
    for (int worst = worst(stay, ready); worst >= 0; worst = worst(stay, ready)) {
      stay.remove(worst);
      leftOut.put(worst, "it and another member do not reach each other");
    }
    List<Integer> kept = new ArrayList<>(stay);
    for (int member : kept.subList(Math.min(kept.size(), rules.most()), kept.size())) {
      leftOut.put(member, "there is room for " + rules.most() + " members only");
    }
    int room = Math.max(0, Math.min(rules.mostJoiners(), rules.most() - kept.size()));
    return new ChangePlan(leftOut, waiting.subList(0, Math.min(room, waiting.size())));
  }

  /** Returns how many members there are afterwards. */
  int sizeAfter(int before) {
    return before - leftOut.size() + joined.size();
  }

  /**
   * Returns who is out of reach of most others, the last of several; -1 if all reach each other.
   */
  private static int worst(SortedSet<Integer> stay, Map<Integer, Ready> ready) {
    int worst = -1;
    int most = 0;
    for (int member : stay) {
      int missing = 0;
      for (int other : stay) {
        boolean isSeen = isUnreached(member, other, ready) || isUnreached(other, member, ready);
        missing += isSeen ? 1 : 0;
      }
      if (missing > 0 && missing >= most) {
        worst = member;
        most = missing;
      }
    }
    return worst;
  }

  private static boolean isUnreached(int from, int to, Map<Integer, Ready> ready) {
    Ready said = ready.get(from);
    return said != null && from != to && said.unreached().contains(to);
  }
}
