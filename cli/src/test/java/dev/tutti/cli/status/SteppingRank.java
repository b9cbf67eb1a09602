package dev.tutti.cli.status;

import dev.tutti.ProcessGroup;
import dev.tutti.Tensor;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;

/**
 * A rank that reduces in steps until it is killed; the last rank works for 20 ms more per step, and
 * after a while for longer, which stands out even where all ranks wait for a processor. Each rank
 * prints now and then how long it worked in at least half of the last steps.
 */
final class SteppingRank {
  private static final int STEPS = 40;

  /** After how many steps the last rank works for twice as long. */
  private static final int GROWTH = 5 * STEPS;

  private static final int MOST_GROWTH = 5;

  private SteppingRank() {}

  public static void main(String[] arguments) throws Exception {
    try (ProcessGroup group = ProcessGroup.init()) {
      Tensor sum = Tensor.of(1f);
      List<Long> slept = new ArrayList<>();
      for (int step = 0; ; step++) {
        if (group.rank() == group.size() - 1) {
          long start = System.nanoTime();
          TimeUnit.MILLISECONDS.sleep(20L << Math.min(step / GROWTH, MOST_GROWTH));
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
