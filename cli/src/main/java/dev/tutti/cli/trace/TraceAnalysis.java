package dev.tutti.cli.trace;

import dev.tutti.OpType;
import dev.tutti.runtime.failure.Diagnosis;
import dev.tutti.runtime.failure.Disagreement;
import dev.tutti.runtime.operation.RankProgress;
import dev.tutti.runtime.operation.RankProgress.Issued;
import java.util.ArrayList;
import java.util.Collections;
import java.util.EnumSet;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.SortedMap;
import java.util.SortedSet;
import java.util.TreeMap;
import java.util.TreeSet;

/**
 * A comparison of the records of all ranks: what does not match, which ranks are missing, and which
 * come last.
 */
final class TraceAnalysis {
  /*
   * The time that a rank spent in a collective is known by the rank's own clock. The rank that
   * spent the shortest time came last, and each of the others waited for it for the time that it
   * spent in excess of that, so no clock is compared with another. A rank that never had to wait
   * was not timed, and counts as 0. For the timeline, clocks are aligned by the ends of collectives
   * that end on all ranks at once.
   */
  private static final Set<OpType> END_TOGETHER =
      EnumSet.of(
          OpType.BARRIER,
          OpType.ALL_REDUCE,
          OpType.ALL_GATHER,
          OpType.ALL_GATHER_INTO,
          OpType.REDUCE_SCATTER,
          OpType.REDUCE_SCATTER_INTO,
          OpType.ALL_TO_ALL,
          OpType.ALL_TO_ALL_SINGLE);

  private final RankTrace trace;

  /** The collectives of each group by number, with their entries by rank. */
  private final Map<String, SortedMap<Long, SortedMap<Integer, TraceEntry>>> collectives =
      new HashMap<>();

  /** What is wrong, in words; empty if nothing is. */
  final List<String> problems = new ArrayList<>();

  /** Those of the problems that are calls that do not match each other. */
  final List<String> disagreements = new ArrayList<>();

  /** How often each rank came last, and to what. */
  final SortedMap<Integer, Straggling> stragglers = new TreeMap<>();

  /** The collectives to which a rank came late because its JVM was paused. */
  final List<HeldUp> heldUp = new ArrayList<>();

  /** Where the time of each rank went. */
  final SortedMap<Integer, Share> shares = new TreeMap<>();

  /** The offsets to add to each rank's clock. */
  final SortedMap<Integer, Long> clockOffsets = new TreeMap<>();

  /** How often a rank came last. */
  static final class Straggling {
    /** How often it was the last to come. */
    int times;

    /** The total time that the others waited for it. */
    long waitedNanos;

    /** How late it was each time. */
    final List<Long> lags = new ArrayList<>();

    /** How often it came last, by operation. */
    final SortedMap<String, Integer> byOperation = new TreeMap<>();

    long medianLag() {
      return median(lags);
    }
  }

  /** Where the time of a rank went. */
  static final class Share {
    /** The number of collectives that are counted. */
    int collectives;

    /** The time from the rank's first call to its last end. */
    long spanNanos;

    /** The time in collectives, waiting for others. */
    long waitingNanos;

    /** The time in collectives after all ranks had come. */
    long movingNanos;
  }

  private TraceAnalysis(RankTrace trace) {
    this.trace = trace;
    trace.groups().keySet().forEach(group -> collectives.put(group, trace.collectives(group)));
  }

  private SortedMap<Long, SortedMap<Integer, TraceEntry>> collectives(String group) {
    return collectives.getOrDefault(group, Collections.emptySortedMap());
  }

  static TraceAnalysis of(RankTrace trace) {
    TraceAnalysis analysis = new TraceAnalysis(trace);
    trace.groups().forEach(analysis::findProblems);
    trace.entries().keySet().forEach(rank -> analysis.shares.put(rank, new Share()));
    trace.groups().forEach((group, ranks) -> analysis.measure(group, ranks));
    trace.entries().forEach(analysis::measureSpan);
    analysis.alignClocks();
    return analysis;
  }

  private void findProblems(String group, SortedSet<Integer> ranks) {
    String where = "group " + group + ": ";
    for (int rank : ranks) {
      if (!trace.entries().containsKey(rank)) {
        problems.add(where + "no record of rank " + rank);
      }
    }
    SortedMap<Long, SortedMap<Integer, TraceEntry>> all = collectives(group);
    String disagreement = disagreement(all, ranks.size());
    if (!disagreement.isEmpty()) {
      problems.add(where + disagreement);
      disagreements.add(where + disagreement);
    }
    findMissing(where, all, ranks);
  }

  /** Returns which calls do not match, and which rank differs from more than half of the ranks. */
  private static String disagreement(
      SortedMap<Long, SortedMap<Integer, TraceEntry>> all, int size) {
    boolean isOfTorch =
        all.values().stream()
            .anyMatch(ranks -> ranks.values().stream().anyMatch(TraceEntry::isOfTorch));
    SortedMap<Integer, List<Issued>> issued = new TreeMap<>();
    all.values()
        .forEach(
            ranks ->
                ranks.forEach(
                    (rank, entry) ->
                        issued
                            .computeIfAbsent(rank, _ -> new ArrayList<>())
                            .add(
                                new Issued(
                                    entry.type(),
                                    entry.sequence(),
                                    isOfTorch ? "" : entry.reduceOp(),
                                    entry.dtype().replace(' ', '_'),
                                    entry.numel(),
                                    isOfTorch ? -1 : entry.root(),
                                    isOfTorch ? "" : entry.parts()))));
    SortedMap<Integer, RankProgress> progress = new TreeMap<>();
    issued.forEach((rank, calls) -> progress.put(rank, RankProgress.ofCalls(calls)));
    Diagnosis found = Disagreement.of(progress, size);
    String odd =
        found.failedRank() < 0 ? "" : "; rank " + found.failedRank() + " differs from the others";
    return found.text().isEmpty() ? "" : found.text() + odd;
  }

  /** Reports the ranks that have not come to the first collective that others are in. */
  private void findMissing(
      String where, SortedMap<Long, SortedMap<Integer, TraceEntry>> all, SortedSet<Integer> ranks) {
    for (Map.Entry<Long, SortedMap<Integer, TraceEntry>> each : all.entrySet()) {
      boolean isPending = each.getValue().values().stream().anyMatch(entry -> !entry.isCompleted());
      SortedSet<Integer> missing = new TreeSet<>(ranks);
      missing.retainAll(trace.entries().keySet());
      missing.removeAll(each.getValue().keySet());
      if (isPending && !missing.isEmpty()) {
        TraceEntry first = each.getValue().firstEntry().getValue();
        for (int rank : missing) {
          problems.add(
              where
                  + "rank "
                  + rank
                  + " has not called "
                  + first.describe()
                  + ", which "
                  + each.getValue().size()
                  + " of "
                  + ranks.size()
                  + " ranks have called; its last collective was "
                  + lastOf(all, rank));
        }
        return;
      }
    }
  }

  private static String lastOf(SortedMap<Long, SortedMap<Integer, TraceEntry>> all, int rank) {
    String last = "none";
    for (SortedMap<Integer, TraceEntry> entries : all.values()) {
      TraceEntry entry = entries.get(rank);
      last = entry == null ? last : entry.describe();
    }
    return last;
  }

  private void measure(String group, SortedSet<Integer> ranks) {
    for (SortedMap<Integer, TraceEntry> entries : collectives(group).values()) {
      boolean isWhole =
          entries.size() == ranks.size()
              && entries.size() > 1
              && entries.values().stream().allMatch(TraceEntry::isTimed);
      if (isWhole) {
        measure(entries);
      }
    }
  }

  private void measure(SortedMap<Integer, TraceEntry> entries) {
    TraceEntry last = entries.firstEntry().getValue();
    for (TraceEntry entry : entries.values()) {
      last = entry.nanos() < last.nanos() ? entry : last;
    }
    List<Long> waits = new ArrayList<>();
    for (TraceEntry entry : entries.values()) {
      long waited = entry.nanos() - last.nanos();
      Share share = shares.computeIfAbsent(entry.rank(), _ -> new Share());
      share.collectives++;
      share.waitingNanos += waited;
      share.movingNanos += last.nanos();
      if (entry.rank() != last.rank()) {
        waits.add(waited);
      }
    }
    Straggling straggling = stragglers.computeIfAbsent(last.rank(), _ -> new Straggling());
    straggling.times++;
    straggling.waitedNanos += waits.stream().mapToLong(Long::longValue).sum();
    long lag = median(waits);
    straggling.lags.add(lag);
    findPauses(last, lag);
    straggling.byOperation.merge(last.type().label(), 1, Integer::sum);
  }

  /**
   * Finds the pauses that account for most of the time by which a rank was late, by its own clock.
   */
  private void findPauses(TraceEntry last, long lagNanos) {
    long paused = 0;
    SortedSet<String> what = new TreeSet<>();
    for (Pause pause : trace.pauses()) {
      if (pause.rank() == last.rank()) {
        long part = pause.within(last.startNanos() - lagNanos, last.startNanos());
        if (part > 0) {
          paused += part;
          what.add(pause.what());
        }
      }
    }
    if (paused > 0 && 2 * paused >= lagNanos) {
      heldUp.add(new HeldUp(last, lagNanos, paused, String.join(", ", what)));
    }
  }

  private void measureSpan(int rank, List<TraceEntry> entries) {
    long from = Long.MAX_VALUE;
    long to = Long.MIN_VALUE;
    for (TraceEntry entry : entries) {
      from = Math.min(from, entry.startNanos());
      to = Math.max(to, Math.max(entry.startNanos(), entry.endNanos()));
    }
    shares.computeIfAbsent(rank, _ -> new Share()).spanNanos = Math.max(0, to - from);
  }

  private void alignClocks() {
    SortedMap<Integer, List<Long>> differences = new TreeMap<>();
    for (String group : trace.groups().keySet()) {
      for (SortedMap<Integer, TraceEntry> entries : collectives(group).values()) {
        TraceEntry first = entries.firstEntry().getValue();
        boolean isReference =
            first.rank() == trace.entries().firstKey()
                && first.endNanos() != 0
                && END_TOGETHER.contains(first.type());
        if (isReference) {
          for (TraceEntry entry : entries.values()) {
            if (entry.endNanos() != 0) {
              differences
                  .computeIfAbsent(entry.rank(), _ -> new ArrayList<>())
                  .add(first.endNanos() - entry.endNanos());
            }
          }
        }
      }
    }
    trace.entries().keySet().forEach(rank -> clockOffsets.put(rank, 0L));
    differences.forEach((rank, all) -> clockOffsets.put(rank, median(all)));
  }

  private static long median(List<Long> values) {
    List<Long> sorted = values.stream().sorted().toList();
    return sorted.isEmpty() ? 0 : sorted.get(sorted.size() / 2);
  }
}
