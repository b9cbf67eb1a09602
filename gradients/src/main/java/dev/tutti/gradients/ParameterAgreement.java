package dev.tutti.gradients;

import dev.tutti.Codec;
import dev.tutti.ProcessGroup;
import dev.tutti.Tensor;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/** The agreement of the ranks on parameters and options, and the copying of rank 0's values. */
final class ParameterAgreement {
  private static final String SEPARATOR = "\n";
  private static final String END = "";

  private ParameterAgreement() {}

  /**
   * Compares the parameters and options of all ranks with those of rank 0.
   *
   * @throws GradientException on all ranks alike, with the first difference
   */
  static void require(ProcessGroup group, ParameterList parameters, ReducerOptions options) {
    List<String> lines = new ArrayList<>();
    lines.add(options.toString());
    for (int i = 0; i < parameters.count(); i++) {
      lines.add(parameters.signature(i).replace(SEPARATOR, " "));
    }
    lines.add(END);
    for (Tensor buffer : options.buffers()) {
      lines.add(buffer.dtype().label() + Arrays.toString(buffer.shape()));
    }
    List<String> all = group.allGatherObject(String.join(SEPARATOR, lines), Codec.STRING);
    String[] expected = all.getFirst().split(SEPARATOR, -1);
    for (int rank = 1; rank < all.size(); rank++) {
      String[] given = all.get(rank).split(SEPARATOR, -1);
      if (!Arrays.equals(expected, given)) {
        throw difference(group, expected, given, rank);
      }
    }
  }

  private static GradientException difference(
      ProcessGroup group, String[] expected, String[] given, int rank) {
    int line = Arrays.mismatch(expected, given);
    String start = "rank " + group.rank() + ": ranks have different ";
    if (line == 0) {
      return new GradientException(
          "%soptions: rank 0 has %s, rank %d has %s".formatted(start, expected[0], rank, given[0]),
          -1,
          null);
    }
    int parameters = Math.max(endOf(expected), endOf(given)) - 1;
    int index = line - 1;
    boolean isParameter = index < parameters;
    return new GradientException(
        "%s%s: number %d of rank 0 is %s, of rank %d %s"
            .formatted(
                start,
                isParameter ? "parameters" : "buffers",
                isParameter ? index : index - parameters - 1,
                at(expected, line),
                rank,
                at(given, line)),
        isParameter ? index : -1,
        null);
  }

  private static int endOf(String[] lines) {
    return Arrays.asList(lines).indexOf(END);
  }

  private static String at(String[] lines, int line) {
    return line < lines.length && !lines[line].equals(END) ? lines[line] : "none";
  }

  /**
   * Copies tensors from one rank to all ranks.
   *
   * @param tensors the tensors, in the same order on all ranks
   * @param root the rank whose values are copied
   */
  static void broadcast(ProcessGroup group, List<Tensor> tensors, int root) {
    for (Tensor tensor : tensors) {
      if (tensor.numel() > 0) {
        group.broadcast(tensor, root);
      }
    }
  }
}
