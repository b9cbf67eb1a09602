package dev.tutti.checkpoint;

import dev.tutti.Tensor;
import dev.tutti.checkpoint.Contents.Copies;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.HexFormat;
import java.util.List;
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

  /** Returns a text that differs if names, types or shapes do. */
  static String describe(Copies copies) {
    MessageDigest digest;
    try {
      digest = MessageDigest.getInstance("SHA-256");
    } catch (NoSuchAlgorithmException e) {
      throw new AssertionError("each Java platform has SHA-256", e);
    }
    for (int i = 0; i < copies.tensors().size(); i++) {
      Tensor tensor = copies.tensors().get(i);
      String line =
          "%s\n%s%s\n"
              .formatted(
                  copies.tensorNames().get(i),
                  tensor.dtype().label(),
                  Arrays.toString(tensor.shape()));
      digest.update(line.getBytes(StandardCharsets.UTF_8));
    }
    return "%d tensors %s"
        .formatted(
            copies.tensors().size(), HexFormat.of().formatHex(digest.digest()).substring(0, 16));
  }
}
