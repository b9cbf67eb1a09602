package dev.tutti.checkpoint;

import dev.tutti.checkpoint.folder.WrittenRange;
import dev.tutti.checkpoint.format.JsonText;
import dev.tutti.checkpoint.format.MalformedException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.TreeMap;

/**
 * The descriptions of what all ranks are about to save, from which each rank concludes the same:
 * whether they agree, whether their parts cover each divided tensor, and who writes a range that
 * several ranks hold.
 */
final class Division {
  private final List<Map<?, ?>> ranks = new ArrayList<>();

  /** A range of a divided tensor on one rank. */
  private record Range(String tensor, String whole, long numel, long first, long end, int rank) {}

  /**
   * Reads the descriptions of all ranks.
   *
   * @param what what the ranks do, for the message
   * @param descriptions the descriptions in the order of ranks
   * @throws CheckpointException if a rank does something else
   */
  Division(String what, List<byte[]> descriptions) {
    for (byte[] description : descriptions) {
      try {
        ranks.add((Map<?, ?>) JsonText.read(ByteBuffer.wrap(description)));
      } catch (MalformedException e) {
        throw new CheckpointException(
            "%s failed: rank %d does not save; call the same methods on all ranks"
                .formatted(what, ranks.size()),
            e);
      }
    }
  }

  /** Describes what this rank is about to save. */
  static byte[] describe(long step, Snapshot snapshot) {
    Map<String, Object> json = new LinkedHashMap<>();
    json.put("step", step);
    json.put("sections", List.copyOf(snapshot.ranges().keySet()));
    json.put("values", List.copyOf(snapshot.values().keySet()));
    Map<String, Object> copies = new TreeMap<>();
    snapshot.replicated().forEach((name, section) -> copies.put(name, Shares.describe(section)));
    json.put("copies", copies);
    json.put("counters", snapshot.counters());
    Map<String, Object> parts = new TreeMap<>();
    for (String section : snapshot.counters().keySet()) {
      parts.put(
          section,
          Objects.requireNonNull(snapshot.ranges().get(section)).stream()
              .map(Division::json)
              .toList());
    }
    json.put("parts", parts);
    return JsonText.write(json).getBytes(StandardCharsets.UTF_8);
  }

  private static List<Object> json(WrittenRange range) {
    String whole = range.dtype().label() + range.shape();
    long numel = range.shape().times(1);
    return List.of(range.tensor(), whole, numel, range.first(), range.first() + range.count());
  }

  /** Returns what the ranks disagree on, or which element no rank holds, if there is any. */
  Optional<String> problem() {
    for (String member : List.of("step", "sections", "values", "copies", "counters")) {
      Object first = ranks.getFirst().get(member);
      for (int rank = 1; rank < ranks.size(); rank++) {
        Object other = ranks.get(rank).get(member);
        if (!String.valueOf(first).equals(String.valueOf(other))) {
          return Optional.of(
              member.equals("copies")
                  ? "rank %d saves other copies than rank 0".formatted(rank)
                  : "rank %d saves the %s %s, but rank 0 %s".formatted(rank, member, other, first));
        }
      }
    }
    for (Object section : parts(0).keySet()) {
      Map<String, List<Range>> tensors = new TreeMap<>();
      for (Range range : ranges(String.valueOf(section))) {
        tensors.computeIfAbsent(range.tensor, name -> new ArrayList<>()).add(range);
      }
      for (List<Range> tensor : tensors.values()) {
        Optional<String> problem = problem(String.valueOf(section), tensor);
        if (problem.isPresent()) {
          return problem;
        }
      }
    }
    return Optional.empty();
  }

  private static Optional<String> problem(String section, List<Range> tensor) {
    tensor.sort(Comparator.comparingLong(Range::first));
    Range any = tensor.getFirst();
    long end = 0;
    for (Range range : tensor) {
      if (!range.whole.equals(any.whole)) {
        return Optional.of(
            "tensor '%s' of section '%s' is %s on rank %d, but %s on rank %d"
                .formatted(any.tensor, section, any.whole, any.rank, range.whole, range.rank));
      }
      if (range.first <= end) {
        end = Math.max(end, range.end);
      }
    }
    return end == any.numel
        ? Optional.empty()
        : Optional.of(
            "no rank holds element %d of the %d of tensor '%s' of section '%s'"
                .formatted(end, any.numel, any.tensor, section));
  }

  private Map<?, ?> parts(int rank) {
    return (Map<?, ?>) Objects.requireNonNull(ranks.get(rank).get("parts"));
  }

  private List<Range> ranges(String section) {
    List<Range> all = new ArrayList<>();
    for (int rank = 0; rank < ranks.size(); rank++) {
      for (Object element : (List<?>) Objects.requireNonNull(parts(rank).get(section))) {
        List<?> fields = (List<?>) element;
        all.add(
            new Range(
                (String) fields.get(0),
                (String) fields.get(1),
                (Long) fields.get(2),
                (Long) fields.get(3),
                (Long) fields.get(4),
                rank));
      }
    }
    return all;
  }

  /** Returns which ranges of a divided section a rank writes: those that no lower rank holds. */
  List<WrittenRange> written(String section, List<WrittenRange> held, int rank) {
    Map<List<Object>, Integer> writers = new HashMap<>();
    for (Range range : ranges(section)) {
      writers.putIfAbsent(List.of(range.tensor, range.first, range.end), range.rank);
    }
    return held.stream()
        .filter(range -> range.count() > 0)
        .filter(
            range ->
                writers.getOrDefault(
                        List.<Object>of(
                            range.tensor(), range.first(), range.first() + range.count()),
                        rank)
                    == rank)
        .toList();
  }
}
