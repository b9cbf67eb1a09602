package dev.tutti.cli.run;

import dev.tutti.ProcessGroup;
import dev.tutti.Tensor;

/**
 * Is a rank that adds a tensor of three elements, but the rank that the argument says one of two.
 */
final class OddRank {
  private OddRank() {}

  public static void main(String[] arguments) {
    try (ProcessGroup group = ProcessGroup.init()) {
      boolean isOdd = group.rank() == Integer.parseInt(arguments[0]);
      group.allReduce(isOdd ? Tensor.of(1f, 2f) : Tensor.of(1f, 2f, 3f));
    }
  }
}
