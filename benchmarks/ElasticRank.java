import dev.tutti.CollectiveException;
import dev.tutti.GroupOptions;
import dev.tutti.ProcessGroup;
import dev.tutti.ReconfigureOptions;
import dev.tutti.Tensor;
import java.time.Duration;

/**
 * A rank of benchmarks/elastic-torch, which reduces every millisecond: {@code ElasticRank
 * elastic|plain}. Elastic ranks continue without one that is lost, and with processes that join.
 */
public class ElasticRank {
  private static final Duration TIMEOUT = Duration.ofMinutes(2);

  public static void main(String[] args) throws InterruptedException {
    long began = System.nanoTime();
    ProcessGroup group = ProcessGroup.init(GroupOptions.DEFAULT.withTimeout(TIMEOUT));
    if (args[0].equals("plain")) {
      reduce(group, began);
      return;
    }
    while (true) {
      try {
        reduce(group, began);
      } catch (CollectiveException e) {
        System.err.println(e.getMessage());
      }
      group = group.reconfigure(ReconfigureOptions.DEFAULT);
    }
  }

  /** Reduces until a process has come to join. Prints when the first sum was there. */
  private static void reduce(ProcessGroup group, long began) throws InterruptedException {
    Tensor sum = Tensor.of(0f, 0f);
    for (int step = 0; sum.getFloat(1) == 0; step++) {
      sum.setFloat(0, group.rank() + 1);
      sum.setFloat(1, group.newcomers());
      group.allReduce(sum);
      if (sum.getFloat(0) != group.size() * (group.size() + 1) / 2f) {
        throw new IllegalStateException("wrong sum: " + sum.getFloat(0));
      }
      if (step == 0) {
        System.out.printf(
            "IN %d %s %d %d %d%n",
            ProcessHandle.current().pid(), group.name(), group.size(), System.nanoTime(), began);
      }
      Thread.sleep(1);
    }
  }
}
