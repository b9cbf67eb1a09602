package dev.tutti.cli.trace;

import dev.tutti.CallOptions;
import dev.tutti.ProcessGroup;
import dev.tutti.ReduceOp;
import dev.tutti.Tensor;
import dev.tutti.TuttiException;
import dev.tutti.Work;

/**
 * One of two ranks, which reduce twice; then one waits in a third reduction, and the other waits
 * for its input.
 */
public final class StalledRank {
  private StalledRank() {}

  public static void main(String[] arguments) throws Exception {
    try (ProcessGroup group = ProcessGroup.init()) {
      Tensor sum = Tensor.of(1f);
      group.allReduce(sum);
      group.allReduce(sum);
      if (group.rank() == 0) {
        Work third = group.allReduce(sum, ReduceOp.SUM, CallOptions.ASYNC);
        System.out.println("READY");
        third.await();
      } else {
        System.out.println("READY");
        int _ = System.in.read();
      }
    } catch (TuttiException e) {
      System.out.println("FAILED " + e.getMessage());
    }
  }
}
