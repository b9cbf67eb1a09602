package dev.tutti.gloo;

import dev.tutti.CollectiveException;
import dev.tutti.DType;
import dev.tutti.ProcessGroup;
import dev.tutti.Tensor;

/**
 * Reduces until something fails; a rank of {@link KilledRankTest}. Prints {@code READY} after the
 * first all-reduce and {@code FAILED class failedRank message} at the end.
 */
final class SurvivorMain {
  private SurvivorMain() {}

  public static void main(String[] args) {
    try (ProcessGroup group = ProcessGroup.init()) {
      Tensor tensor = Tensor.allocate(DType.FLOAT32, Integer.parseInt(args[0]));
      group.allReduce(tensor);
      System.out.println("READY");
      while (true) {
        group.allReduce(tensor);
      }
    } catch (CollectiveException e) {
      System.out.println(
          "FAILED " + e.getClass().getSimpleName() + " " + e.failedRank() + " " + e.getMessage());
    }
  }
}
