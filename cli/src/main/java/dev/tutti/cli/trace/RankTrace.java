package dev.tutti.cli.trace;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.SortedMap;
import java.util.SortedSet;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.function.UnaryOperator;
import java.util.stream.Collectors;

/**
 * The content of the records of all ranks.
 *
 * @param groups the ranks of each group
 * @param entries the entries of each rank, oldest first
 * @param pauses the pauses of the ranks' JVMs
 * @param notes what to tell the user about the files
 * @param failures the failure of each failed group, by rank
 */
record RankTrace(
    SortedMap<String, SortedSet<Integer>> groups,
    SortedMap<Integer, List<TraceEntry>> entries,
    List<Pause> pauses,
    List<String> notes,
    SortedMap<String, SortedMap<Integer, Replay.Failure>> failures) {
  static RankTrace empty() {
    return new RankTrace(
        new TreeMap<>(), new TreeMap<>(), new ArrayList<>(), new ArrayList<>(), new TreeMap<>());
  }

  void addRank(int rank) {
    entries.computeIfAbsent(rank, _ -> new ArrayList<>());
  }

  void addGroup(String group, Iterable<Integer> ranks) {
    ranks.forEach(rank -> groups.computeIfAbsent(group, _ -> new TreeSet<>()).add(rank));
  }

  void add(TraceEntry entry) {
    addRank(entry.rank());
    addGroup(entry.group(), List.of(entry.rank()));
    entries.getOrDefault(entry.rank(), new ArrayList<>()).add(entry);
  }

  /** Adds the failures of another trace. */
  void addFailures(RankTrace other) {
    other.failures.forEach(
        (group, all) -> failures.computeIfAbsent(group, _ -> new TreeMap<>()).putAll(all));
  }

  /** Adds what another trace has in addition to this one, with the entries in another form. */
  void addMissing(RankTrace other, UnaryOperator<TraceEntry> form) {
    pauses.addAll(other.pauses);
    notes.addAll(other.notes);
    addFailures(other);
    other.groups.forEach(this::addGroup);
    other.entries.forEach(
        (rank, all) -> {
          addRank(rank);
          Set<List<Object>> known =
              entries.getOrDefault(rank, List.of()).stream()
                  .map(TraceEntry::key)
                  .collect(Collectors.toSet());
          all.stream().filter(entry -> !known.contains(entry.key())).map(form).forEach(this::add);
        });
  }

  /** Returns the collectives of a group by number, each with its entries by rank. */
  SortedMap<Long, SortedMap<Integer, TraceEntry>> collectives(String group) {
    SortedMap<Long, SortedMap<Integer, TraceEntry>> all = new TreeMap<>();
    for (Map.Entry<Integer, List<TraceEntry>> each : entries.entrySet()) {
      for (TraceEntry entry : each.getValue()) {
        if (!entry.isMessage() && entry.group().equals(group)) {
          all.computeIfAbsent(entry.sequence(), _ -> new TreeMap<>()).put(each.getKey(), entry);
        }
      }
    }
    return all;
  }
}
