package dev.tutti.cli.trace;

import dev.tutti.ProcessGroup;
import dev.tutti.Tensor;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;

/**
 * A rank of a job whose last rank works for some milliseconds more, as its argument says, in each
 * of 60 steps but one: before step 31, the first rank collects garbage instead. Prints how long it
 * slept in at least half of the steps.
 */
public final class PausedRank {
  private static final int STEPS = 60;
  private static final int AT = 30;
  private static final int LIVE = 3_000_000;

  private PausedRank() {}

  public static void main(String[] arguments) throws Exception {
    long millis = Long.parseLong(arguments[0]);
    List<Object> live = new ArrayList<>();
    List<Long> slept = new ArrayList<>();
    try (ProcessGroup group = ProcessGroup.init()) {
      Tensor sum = Tensor.of(1f);
      if (group.rank() == 0) {
        for (int i = 0; i < LIVE; i++) {
          live.add(new int[] {i});
        }
      }
      group.barrier();
      for (int step = 0; step < STEPS; step++) {
        if (group.rank() == group.size() - 1 && step != AT) {
          long start = System.nanoTime();
          TimeUnit.MILLISECONDS.sleep(millis);
          slept.add(System.nanoTime() - start);
        }
        if (group.rank() == 0 && step == AT) {
          System.gc();
        }
        group.allReduce(sum);
      }
    }
    slept.sort(null);
    System.out.println("SLEPT " + (slept.isEmpty() ? 0 : slept.get(slept.size() / 2)));
    System.out.println("LIVE " + live.size());
  }
}
