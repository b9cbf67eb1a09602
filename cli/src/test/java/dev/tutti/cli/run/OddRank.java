package dev.tutti.cli.run;

import dev.tutti.ProcessGroup;
import dev.tutti.Tensor;

/**
 * A rank that reduces a tensor of three elements, or of two if it is the rank in the argument. All
 * ranks have the group before that: if two ranks disagree about their calls, they need a third to
 * find which is odd.
 */
final class OddRank {
  private OddRank() {}

  public static void main(String[] arguments) {
    try (ProcessGroup group = ProcessGroup.init()) {
      boolean isOdd = group.rank() == Integer.parseInt(arguments[0]);
      group.barrier();
      group.allReduce(isOdd ? Tensor.of(1f, 2f) : Tensor.of(1f, 2f, 3f));
    }
  }
}
