package dev.tutti.checkpoint;

import dev.tutti.Tensor;
import dev.tutti.checkpoint.Contents.Copies;
import dev.tutti.checkpoint.format.Sha256;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.Comparator;
import java.util.List;
import java.util.Optional;
import java.util.stream.Collectors;
import java.util.stream.IntStream;

/** The division of whole tensors among ranks, the same on all ranks. */
final class Shares {
  private Shares() {}

  /**
   * Gives each tensor, the largest first, to the rank with the fewest bytes so far.
   *
   * @return for each rank, the positions of its tensors
   */
  static List<List<Integer>> of(List<Tensor> tensors, int ranks) {
    List<List<Integer>> shares = new ArrayList<>();
    IntStream.range(0, ranks).forEach(rank -> shares.add(new ArrayList<>()));
    long[] bytes = new long[ranks];
    IntStream.range(0, tensors.size())
        .boxed()
        .sorted(Comparator.comparingLong(i -> -tensors.get(i).byteSize()))
        .forEach(
            i -> {
              int least = 0;
              for (int rank = 1; rank < ranks; rank++) {
                least = bytes[rank] < bytes[least] ? rank : least;
              }
              shares.get(least).add(i);
              bytes[least] += tensors.get(i).byteSize();
            });
    return shares;
  }

  /** Returns a list of all tensors of sections, by which others find one that differs. */
  static byte[] list(Collection<Copies> sections) {
    return sections.stream()
        .flatMap(
            section -> IntStream.range(0, section.tensors().size()).mapToObj(i -> line(section, i)))
        .collect(Collectors.joining("\n"))
        .getBytes(StandardCharsets.UTF_8);
  }

  private static String line(Copies section, int i) {
    Tensor tensor = section.tensors().get(i);
    return "'%s' of section '%s' as %s%s"
        .formatted(
            section.tensorNames().get(i),
            section.name(),
            tensor.dtype().label(),
            Arrays.toString(tensor.shape()));
  }

  /**
   * Returns the first tensor that differs from that of rank 0, if there is one.
   *
   * @param lists the lists of all ranks, in the order of ranks
   */
  static Optional<String> difference(List<byte[]> lists) {
    List<List<String>> ranks =
        lists.stream()
            .map(list -> new String(list, StandardCharsets.UTF_8).lines().toList())
            .toList();
    List<String> first = ranks.getFirst();
    for (int rank = 1; rank < ranks.size(); rank++) {
      List<String> other = ranks.get(rank);
      for (int i = 0; i < Math.max(first.size(), other.size()); i++) {
        String expected = i < first.size() ? first.get(i) : "no more";
        String actual = i < other.size() ? other.get(i) : "no more";
        if (!actual.equals(expected)) {
          return Optional.of(
              "rank %d saves %s where rank 0 saves %s".formatted(rank, actual, expected));
        }
      }
    }
    return Optional.empty();
  }

  /** Returns a text that differs if names, types or shapes do. */
  static String describe(Copies copies) {
    StringBuilder lines = new StringBuilder();
    for (int i = 0; i < copies.tensors().size(); i++) {
      Tensor tensor = copies.tensors().get(i);
      lines
          .append(copies.tensorNames().get(i))
          .append('\n')
          .append(tensor.dtype().label())
          .append(Arrays.toString(tensor.shape()))
          .append('\n');
    }
    String digest = Sha256.of(lines.toString().getBytes(StandardCharsets.UTF_8));
    return "%d tensors %s".formatted(copies.tensors().size(), digest.substring(0, 16));
  }
}
