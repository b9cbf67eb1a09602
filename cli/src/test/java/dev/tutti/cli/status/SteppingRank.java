package dev.tutti.cli.status;

import dev.tutti.ProcessGroup;
import dev.tutti.Tensor;
import java.util.concurrent.CountDownLatch;

/** A rank that reduces in steps, after which rank 1 keeps the others waiting. */
final class SteppingRank {
  static final int STEPS = 40;

  private SteppingRank() {}

  public static void main(String[] arguments) throws Exception {
    try (ProcessGroup group = ProcessGroup.init()) {
      Tensor sum = Tensor.of(1f);
      for (int step = 0; step < STEPS; step++) {
        group.allReduce(sum);
      }
      System.out.println("READY");
      if (group.rank() == 1) {
        new CountDownLatch(1).await();
      }
      group.allReduce(sum);
    }
  }
}
