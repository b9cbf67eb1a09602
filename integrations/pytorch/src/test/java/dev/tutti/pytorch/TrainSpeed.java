package dev.tutti.pytorch;

import com.sun.management.OperatingSystemMXBean;
import dev.tutti.ProcessGroup;
import java.lang.management.ManagementFactory;
import java.util.Arrays;
import java.util.Locale;
import org.bytedeco.javacpp.Loader;
import org.bytedeco.pytorch.LinearImpl;
import org.bytedeco.pytorch.Module;
import org.bytedeco.pytorch.SGD;
import org.bytedeco.pytorch.SGDOptions;
import org.bytedeco.pytorch.Tensor;
import org.bytedeco.pytorch.global.torch;

/**
 * Times steps of a network of 1.9 million parameters with batches of 512, which are divided among
 * all ranks; {@code benchmarks/training} runs it. Each rank has as many threads as {@code
 * OMP_NUM_THREADS} says, or one.
 *
 * <p>Arguments: the number of steps to time.
 */
public final class TrainSpeed {
  private static final int THREADS =
      Integer.parseInt(System.getenv().getOrDefault("OMP_NUM_THREADS", "1"));
  private static final int BATCH = 512;
  private static final int WARM_UP = 10;
  private static final OperatingSystemMXBean SYSTEM =
      (OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();

  private TrainSpeed() {}

  private static final class Network extends Module {
    private final LinearImpl first = register_module("first", new LinearImpl(784, 1024));
    private final LinearImpl second = register_module("second", new LinearImpl(1024, 1024));
    private final LinearImpl third = register_module("third", new LinearImpl(1024, 10));

    Tensor forward(Tensor input) {
      return third.forward(torch.relu(second.forward(torch.relu(first.forward(input)))));
    }
  }

  /** Runs one rank; rank 0 prints the median time of a step, and its CPU time. */
  public static void main(String[] args) {
    int steps = Integer.parseInt(args[0]);
    Loader.load(torch.class);
    torch.set_num_threads(THREADS);
    try (ProcessGroup group = ProcessGroup.init()) {
      torch.manual_seed(1);
      Network network = new Network();
      Tensor input = torch.randn(BATCH / group.size(), 784);
      try (DataParallel parallel = new DataParallel(network, group)) {
        SGD optimizer = new SGD(network.parameters(), new SGDOptions(0.01));
        long[] nanos = new long[WARM_UP + steps];
        long used = 0;
        for (int step = 0; step < nanos.length; step++) {
          if (step == WARM_UP) {
            used = SYSTEM.getProcessCpuTime();
          }
          long start = System.nanoTime();
          optimizer.zero_grad(false);
          try (Tensor output = network.forward(input);
              Tensor loss = output.square().mean()) {
            loss.backward();
          }
          parallel.await();
          optimizer.step();
          nanos[step] = System.nanoTime() - start;
        }
        if (group.rank() == 0) {
          System.out.printf(
              Locale.ROOT,
              "step %.2f ms, mean processor time of rank 0 %.2f ms, communication that backward did"
                  + " not hide in the mean %.2f ms%n",
              median(nanos),
              (SYSTEM.getProcessCpuTime() - used) / 1e6 / steps,
              parallel.reducer().meanStatistics().exposed().toNanos() / 1e6);
        }
      }
    }
  }

  private static double median(long[] nanos) {
    long[] timed = Arrays.stream(nanos).skip(WARM_UP).sorted().toArray();
    return timed[timed.length / 2] / 1e6;
  }
}
