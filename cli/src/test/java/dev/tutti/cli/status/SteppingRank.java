package dev.tutti.cli.status;

import dev.tutti.ProcessGroup;
import dev.tutti.Tensor;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;

/**
 * A rank that reduces in steps until it is killed; the last rank works for 20 ms more per step.
 * Each rank prints now and then how long it worked in at least half of the last steps.
 */
final class SteppingRank {
  private static final int STEPS = 40;

  private SteppingRank() {}

  public static void main(String[] arguments) throws Exception {
    try (ProcessGroup group = ProcessGroup.init()) {
      Tensor sum = Tensor.of(1f);
      List<Long> slept = new ArrayList<>();
      for (int step = 0; ; step++) {
        if (group.rank() == group.size() - 1) {
          long start = System.nanoTime();
          TimeUnit.MILLISECONDS.sleep(20);
          slept.add(System.nanoTime() - start);
        }
        group.allReduce(sum);
        if (step % STEPS == STEPS - 1) {
          slept.sort(null);
          System.out.println("SLEPT " + (slept.isEmpty() ? 0 : slept.get(slept.size() / 2)));
          System.out.println("READY");
          slept.clear();
        }
      }
    }
  }
}
