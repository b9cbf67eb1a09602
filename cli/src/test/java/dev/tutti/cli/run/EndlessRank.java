package dev.tutti.cli.run;

import dev.tutti.ProcessGroup;
import dev.tutti.Tensor;

/**
 * A rank that prints its process id once all ranks have arrived, and then reduces until that fails.
 */
final class EndlessRank {
  private EndlessRank() {}

  public static void main(String[] arguments) {
    try (ProcessGroup group = ProcessGroup.init()) {
      Tensor sum = Tensor.of(1f);
      group.allReduce(sum);
      System.out.println("pid " + ProcessHandle.current().pid());
      while (true) {
        group.allReduce(sum);
      }
    }
  }
}
