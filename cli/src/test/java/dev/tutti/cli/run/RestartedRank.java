package dev.tutti.cli.run;

import dev.tutti.ProcessGroup;
import dev.tutti.Tensor;
import java.util.concurrent.TimeUnit;

/**
 * A rank that reduces. In the first attempt the last rank ends midway, as if it had crashed; in the
 * next attempt it comes late.
 */
final class RestartedRank {
  private RestartedRank() {}

  public static void main(String[] arguments) throws InterruptedException {
    int attempt = Integer.parseInt(System.getenv("TORCHELASTIC_RESTART_COUNT"));
    if (attempt > 0 && System.getenv("RANK").equals("0")) {
      TimeUnit.SECONDS.sleep(1);
    }
    try (ProcessGroup group = ProcessGroup.init()) {
      Tensor sum = Tensor.of(group.rank() + 1f);
      group.allReduce(sum);
      if (attempt == 0 && group.rank() == group.size() - 1) {
        Runtime.getRuntime().halt(3);
      }
      group.barrier();
      System.out.println("attempt " + attempt + " sum " + sum.toFloatArray()[0]);
    }
  }
}
