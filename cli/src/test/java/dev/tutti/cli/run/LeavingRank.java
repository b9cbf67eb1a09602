package dev.tutti.cli.run;

import dev.tutti.ProcessGroup;
import dev.tutti.Tensor;
import java.util.concurrent.CountDownLatch;

/**
 * A rank that reduces until that fails. Rank 1 instead closes its group because of its own error,
 * and does not end until asked to.
 */
final class LeavingRank {
  private LeavingRank() {}

  public static void main(String[] arguments) throws InterruptedException {
    try (ProcessGroup group = ProcessGroup.init()) {
      Tensor sum = Tensor.of(1f);
      group.allReduce(sum);
      if (group.rank() == 1) {
        // Before rank 0 can find that this group is closed, and end the job.
        System.out.println("rank 1 stops: no more data");
        throw new IllegalStateException("no more data");
      }
      group.allReduce(sum);
    } catch (IllegalStateException e) {
      new CountDownLatch(1).await();
    }
  }
}
