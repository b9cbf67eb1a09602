package dev.tutti.runtime.view;

import dev.tutti.runtime.failure.Evidence;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.SortedMap;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.function.UnaryOperator;
import java.util.stream.Collectors;

/**
 * The content of the records of all ranks. Used by one thread at a time.
 *
 * @param groups the ranks of each group, in their order in the group
 * @param operations the operations of each rank that left a record, oldest first
 * @param pauses the pauses of the ranks' JVMs
 * @param notes what to say to the user about the files
 * @param failures the failure of each failed group, by rank
 * @param taken when each record was taken
 */
public record JobRecords(
    SortedMap<String, List<Integer>> groups,
    SortedMap<Integer, List<RankOperation>> operations,
    List<Pause> pauses,
    List<String> notes,
    SortedMap<String, SortedMap<Integer, Failed>> failures,
    SortedMap<Integer, Taken> taken) {
  /**
   * When a record was taken.
   *
   * @param nanos the time, by the rank's clock
   * @param slowNanos how long an operation may wait before the rank warns; 0 if it never does
   */
  public record Taken(long nanos, long slowNanos) {}

  /**
   * The failure of a group in the record of a rank.
   *
   * @param evidence what the rank judged
   * @param verdict the rank in the group that it blamed, or -1
   * @param text what happened, as it threw it
   */
  public record Failed(Evidence evidence, long verdict, String text) {
    /**
     * Reads a failure.
     *
     * @param map what JSON has of it
     * @throws IllegalArgumentException if the map is no failure
     */
    static Failed of(Map<?, ?> map) {
      if (map.get("verdict") instanceof Number verdict && map.get("text") instanceof String text) {
        return new Failed(Evidence.of(map), verdict.longValue(), text);
      }
      throw new IllegalArgumentException("it has no verdict");
    }

    /** Returns whether another rank found who is to blame. */
    boolean isAdopted() {
      return evidence.adopted() != null;
    }
  }

  public static JobRecords empty() {
    return new JobRecords(
        new TreeMap<>(),
        new TreeMap<>(),
        new ArrayList<>(),
        new ArrayList<>(),
        new TreeMap<>(),
        new TreeMap<>());
  }

  public void addRank(int rank) {
    operations.computeIfAbsent(rank, _ -> new ArrayList<>());
  }

  /** Adds ranks to a group; the order is that of the ranks if they are all, else ascending. */
  public void addGroup(String group, Collection<Integer> ranks) {
    List<Integer> known = groups.getOrDefault(group, List.of());
    if (ranks.containsAll(known)) {
      groups.put(group, List.copyOf(ranks));
    } else if (!known.containsAll(ranks)) {
      Set<Integer> all = new TreeSet<>(known);
      all.addAll(ranks);
      groups.put(group, List.copyOf(all));
    }
  }

  public void add(RankOperation operation) {
    addRank(operation.rank());
    addGroup(operation.group(), List.of(operation.rank()));
    operations.getOrDefault(operation.rank(), new ArrayList<>()).add(operation);
  }

  /** Adds the failures of other records. */
  public void addFailures(JobRecords other) {
    other.failures.forEach(
        (group, all) -> failures.computeIfAbsent(group, _ -> new TreeMap<>()).putAll(all));
  }

  /** Adds what other records have in addition to these, with the operations in another form. */
  public void addMissing(JobRecords other, UnaryOperator<RankOperation> form) {
    pauses.addAll(other.pauses);
    notes.addAll(other.notes);
    addFailures(other);
    other.groups.forEach(this::addGroup);
    other.taken.forEach((rank, when) -> taken.putIfAbsent(rank, when));
    other.operations.forEach(
        (rank, all) -> {
          addRank(rank);
          Set<List<Object>> known =
              operations.getOrDefault(rank, List.of()).stream()
                  .map(RankOperation::key)
                  .collect(Collectors.toSet());
          all.stream().filter(each -> !known.contains(each.key())).map(form).forEach(this::add);
        });
  }

  /** Returns the collectives by group and number, each with its operations by rank. */
  List<SortedMap<Integer, RankOperation>> collectives() {
    SortedMap<String, SortedMap<Long, SortedMap<Integer, RankOperation>>> all = new TreeMap<>();
    operations.values().stream()
        .flatMap(List::stream)
        .filter(call -> !call.isMessage())
        .forEach(
            call ->
                all.computeIfAbsent(call.group(), _ -> new TreeMap<>())
                    .computeIfAbsent(call.call().sequence(), _ -> new TreeMap<>())
                    .put(call.rank(), call));
    return all.values().stream().flatMap(group -> group.values().stream()).toList();
  }

  /** Returns how long an operation has taken or waited until the record was taken. */
  public long nanos(RankOperation call) {
    return call.isCompleted() || call.endNanos() != 0
        ? call.nanos()
        : call.startNanos() == 0 ? 0 : Math.max(0, end(call.rank()) - call.startNanos());
  }

  /** Returns when the record of a rank was taken; if that is not known, the last time in any. */
  private long end(int rank) {
    Taken own = taken.get(rank);
    return own == null ? lastNanos() : own.nanos;
  }

  /** Returns the last time of any operation; 0 if there is none. */
  public long lastNanos() {
    return operations.values().stream()
        .flatMap(List::stream)
        .mapToLong(call -> Math.max(call.startNanos(), call.endNanos()))
        .max()
        .orElse(0);
  }
}
