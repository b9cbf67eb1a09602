package dev.tutti.cli.status;

import dev.tutti.ProcessGroup;
import dev.tutti.Tensor;
import java.util.concurrent.TimeUnit;

/** A rank that reduces in steps until it is killed; the last one works for 20 ms more a step. */
final class SteppingRank {
  private static final int STEPS = 40;

  private SteppingRank() {}

  public static void main(String[] arguments) throws Exception {
    try (ProcessGroup group = ProcessGroup.init()) {
      Tensor sum = Tensor.of(1f);
      for (int step = 0; ; step++) {
        if (group.rank() == group.size() - 1) {
          TimeUnit.MILLISECONDS.sleep(20);
        }
        group.allReduce(sum);
        if (step == STEPS) {
          System.out.println("READY");
        }
      }
    }
  }
}
