package dev.tutti.runtime.membership;

import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;

/** A generation and the numbers of its members, read from a log in the most literal way. */
record Chain(long generation, Set<String> members) {
  /**
   * Reads a log; returns all generations that count, the last one last.
   *
   * @param entries the entries; null for those that say nothing about members
   * @param size how many members generation 0 has
   */
  static List<Chain> of(List<@Nullable MembershipEntry> entries, int size) {
    Set<String> members =
        IntStream.range(0, size).mapToObj(String::valueOf).collect(Collectors.toSet());
    List<Chain> chain = new ArrayList<>(List.of(new Chain(0, members)));
    Set<Long> changes = new HashSet<>();
    Set<Long> over = new HashSet<>();
    Set<String> waiting = new HashSet<>();
    Set<String> joined = new HashSet<>();
    long open = 0;
    int number = size;
    for (int place = 1; place <= entries.size(); place++) {
      Chain last = chain.getLast();
      MembershipEntry entry = entries.get(place - 1);
      if (entry instanceof MembershipEntry.Waiting(String name)) {
        if (!joined.contains(name)) {
          waiting.add(name);
        }
      } else if (entry instanceof MembershipEntry.Withdrawn(String name)) {
        waiting.remove(name);
      } else if (entry instanceof MembershipEntry.Change change
          && change.base() == last.generation
          && (changes.isEmpty() || over.contains(open))) {
        open = place;
        changes.add(open);
      } else if (entry instanceof MembershipEntry.Abandoned(long what, int _, String _)
          && what == open) {
        over.add(what);
      } else if (entry instanceof MembershipEntry.Generation next
          && open > 0
          && next.change() == open
          && !over.contains(open)
          && next.base() == last.generation
          && waiting.containsAll(next.plan().joined())) {
        Set<String> after = new HashSet<>(last.members);
        next.plan().leftOut().keySet().forEach(each -> after.remove(String.valueOf(each)));
        for (String name : next.plan().joined()) {
          waiting.remove(name);
          joined.add(name);
          after.add(String.valueOf(number++));
        }
        over.add(open);
        chain.add(new Chain(place, after));
      }
    }
    return chain;
  }
}
