package dev.tutti.cli.trace;

import dev.tutti.OpType;
import dev.tutti.spi.PeerLateException;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.SortedMap;

/** Finds the operations that had not completed when the records were written. */
final class Unfinished {
  private Unfinished() {}

  /** Describes these operations: the collectives of each group, oldest first, and then messages. */
  static List<String> of(RankTrace trace) {
    List<String> all = new ArrayList<>();
    for (String group : trace.groups().keySet()) {
      for (SortedMap<Integer, TraceEntry> entries : trace.collectives(group).values()) {
        Map<String, List<Integer>> open = new LinkedHashMap<>();
        entries.forEach(
            (rank, entry) -> {
              if (!entry.isCompleted()) {
                open.computeIfAbsent(entry.describe(), _ -> new ArrayList<>()).add(rank);
              }
            });
        open.forEach((call, ranks) -> all.add(line(group, PeerLateException.ranks(ranks), call)));
      }
    }
    trace.entries().values().stream()
        .flatMap(List::stream)
        .filter(entry -> entry.isMessage() && !entry.isCompleted())
        .forEach(
            entry ->
                all.add(
                    line(
                        entry.group(),
                        "rank " + entry.rank(),
                        entry.describe() + withPeer(entry))));
    return all;
  }

  private static String line(String group, String ranks, String call) {
    return "group " + group + ": " + ranks + " did not complete " + call;
  }

  private static String withPeer(TraceEntry entry) {
    String direction = entry.type() == OpType.SEND ? " to rank " : " from rank ";
    return entry.root() < 0 ? "" : direction + entry.root();
  }
}
