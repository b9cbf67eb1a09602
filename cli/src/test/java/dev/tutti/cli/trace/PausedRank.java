package dev.tutti.cli.trace;

import dev.tutti.CallOptions;
import dev.tutti.ProcessGroup;
import dev.tutti.ReduceOp;
import dev.tutti.Tensor;
import dev.tutti.Work;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.IntStream;

/**
 * A rank of a job whose first rank collects garbage before one of 60 steps, once all others have
 * begun that step.
 */
public final class PausedRank {
  private static final int STEPS = 60;
  private static final int AT = 30;
  private static final int LIVE = 3_000_000;

  private PausedRank() {}

  public static void main(String[] arguments) throws Exception {
    List<Object> live = new ArrayList<>();
    try (ProcessGroup group = ProcessGroup.init()) {
      Tensor sum = Tensor.of(1f);
      if (group.rank() == 0) {
        for (int i = 0; i < LIVE; i++) {
          live.add(new int[] {i});
        }
      }
      group.barrier();
      for (int step = 0; step < STEPS; step++) {
        if (step != AT) {
          group.allReduce(sum);
        } else if (group.rank() == 0) {
          group
              .store()
              .await(IntStream.range(1, group.size()).mapToObj(r -> "begun/" + r).toList());
          System.gc();
          group.allReduce(sum);
        } else {
          Work work = group.allReduce(sum, ReduceOp.SUM, CallOptions.ASYNC);
          group.store().set("begun/" + group.rank(), new byte[1]);
          work.await();
        }
      }
    }
    System.out.println("LIVE " + live.size());
  }
}
