package dev.tutti.runtime.failure;

import dev.tutti.OpType;
import dev.tutti.runtime.operation.RankProgress;
import dev.tutti.runtime.operation.RankProgress.Issued;
import dev.tutti.spi.PeerLateException;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Comparator;
import java.util.EnumSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.SortedMap;
import java.util.TreeMap;
import java.util.stream.Collectors;

/** Finds the first collective in which the ranks made calls that do not match. */
final class Disagreement {
  /**
   * To these operations all ranks bring the same number of elements; in others their parts may
   * differ in length, but all ranks have all lengths if they pass a tensor for each rank.
   */
  private static final Set<OpType> EQUAL =
      EnumSet.of(OpType.BROADCAST, OpType.ALL_REDUCE, OpType.REDUCE);

  private static final String HEADING = "ranks disagree: ";

  private Disagreement() {}

  /**
   * Compares the recent calls of ranks.
   *
   * @param ranks what each rank reports about itself, by rank
   * @param size the number of ranks in the group
   * @return what each rank called, in words, and the first rank that differs from more than half of
   *     all ranks; nothing if all calls match
   */
  public static Diagnosis of(SortedMap<Integer, RankProgress> ranks, int size) {
    SortedMap<Long, Map<Issued, List<Integer>>> calls = new TreeMap<>();
    ranks.forEach(
        (rank, progress) -> {
          for (Issued issued : progress.recent()) {
            calls
                .computeIfAbsent(issued.sequence(), n -> new LinkedHashMap<>())
                .computeIfAbsent(comparable(issued), n -> new ArrayList<>())
                .add(rank);
          }
        });
    return calls.values().stream()
        .filter(kinds -> kinds.size() > 1)
        .findFirst()
        .map(kinds -> new Diagnosis(oddOne(kinds.values(), size), describe(kinds)))
        .orElse(Diagnosis.NONE);
  }

  /** Returns whether a text says what each rank called. */
  static boolean isIn(String text) {
    return text.startsWith(HEADING);
  }

  private static int oddOne(Collection<List<Integer>> kinds, int size) {
    return kinds.stream()
        .filter(most -> 2 * most.size() > size)
        .flatMap(most -> kinds.stream().filter(other -> !other.equals(most)))
        .flatMap(List::stream)
        .min(Comparator.naturalOrder())
        .orElse(-1);
  }

  private static Issued comparable(Issued issued) {
    return EQUAL.contains(issued.type())
        ? issued
        : new Issued(
            issued.type(),
            issued.sequence(),
            issued.reduceOp(),
            issued.dtype(),
            -1,
            issued.root(),
            issued.parts());
  }

  private static String describe(Map<Issued, List<Integer>> kinds) {
    return kinds.entrySet().stream()
        .map(
            kind ->
                PeerLateException.ranks(kind.getValue()) + " called " + kind.getKey().describe())
        .collect(Collectors.joining(", ", HEADING, ""));
  }
}
