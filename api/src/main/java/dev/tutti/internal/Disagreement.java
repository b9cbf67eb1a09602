package dev.tutti.internal;

import dev.tutti.OpType;
import dev.tutti.internal.Progress.Issued;
import dev.tutti.spi.PeerLateException;
import java.util.ArrayList;
import java.util.EnumSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.SortedMap;
import java.util.TreeMap;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;

/** Finds the first collective for which ranks made calls that do not fit each other. */
final class Disagreement {
  /** To these all ranks bring as many elements of one type; to others their parts may differ. */
  private static final Set<OpType> EQUAL =
      EnumSet.of(OpType.BROADCAST, OpType.ALL_REDUCE, OpType.REDUCE);

  private Disagreement() {}

  /**
   * Compares what ranks called lately.
   *
   * @param ranks what each says of itself, by rank
   * @return what each called, in words; null if all fits
   */
  static @Nullable String of(SortedMap<Integer, Progress> ranks) {
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
        .map(Disagreement::describe)
        .orElse(null);
  }

  private static Issued comparable(Issued issued) {
    return EQUAL.contains(issued.type())
        ? issued
        : new Issued(issued.type(), issued.sequence(), "", 0);
  }

  private static String describe(Map<Issued, List<Integer>> kinds) {
    return kinds.entrySet().stream()
        .map(
            kind ->
                PeerLateException.ranks(kind.getValue()) + " called " + kind.getKey().describe())
        .collect(Collectors.joining(", ", "ranks disagree: ", ""));
  }
}
