package dev.tutti.djl;

import ai.djl.Model;
import ai.djl.engine.Engine;
import ai.djl.ndarray.NDList;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.types.Shape;
import ai.djl.nn.Activation;
import ai.djl.nn.SequentialBlock;
import ai.djl.nn.core.Linear;
import ai.djl.training.DefaultTrainingConfig;
import ai.djl.training.GradientCollector;
import ai.djl.training.Trainer;
import ai.djl.training.loss.Loss;
import ai.djl.training.optimizer.Optimizer;
import ai.djl.training.tracker.Tracker;
import com.sun.management.OperatingSystemMXBean;
import dev.tutti.ProcessGroup;
import java.lang.management.ManagementFactory;
import java.util.Arrays;
import java.util.Locale;

/**
 * Times steps of a network of 1.9 million parameters with batches of 512, which are divided among
 * all ranks; {@code benchmarks/training} runs it. Each rank has as many threads as {@code
 * OMP_NUM_THREADS} says, or one.
 *
 * <p>Arguments: the number of steps to time.
 */
public final class TrainSpeed {
  private static final int BATCH = 512;
  private static final int WARM_UP = 10;
  private static final OperatingSystemMXBean SYSTEM =
      (OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();

  private TrainSpeed() {}

  /** Runs one rank; rank 0 prints the median time of a step, and its CPU time. */
  public static void main(String[] args) {
    int steps = Integer.parseInt(args[0]);
    System.setProperty(
        "ai.djl.pytorch.num_threads", System.getenv().getOrDefault("OMP_NUM_THREADS", "1"));
    Engine.getInstance().setRandomSeed(1);
    try (ProcessGroup group = ProcessGroup.init()) {
      DataParallelListener parallel = new DataParallelListener(group);
      DefaultTrainingConfig config =
          new DefaultTrainingConfig(Loss.l2Loss())
              .optOptimizer(Optimizer.sgd().setLearningRateTracker(Tracker.fixed(0.01f)).build())
              .addTrainingListeners(parallel);
      try (Model model = Model.newInstance("speed");
          NDManager manager = model.getNDManager().newSubManager()) {
        model.setBlock(
            new SequentialBlock()
                .add(Linear.builder().setUnits(1024).build())
                .add(Activation::relu)
                .add(Linear.builder().setUnits(1024).build())
                .add(Activation::relu)
                .add(Linear.builder().setUnits(10).build()));
        Shape shape = new Shape(BATCH / group.size(), 784);
        NDList input = new NDList(manager.randomNormal(shape));
        try (Trainer trainer = model.newTrainer(config)) {
          trainer.initialize(shape);
          parallel.start(trainer);
          long[] nanos = new long[WARM_UP + steps];
          long used = 0;
          for (int step = 0; step < nanos.length; step++) {
            if (step == WARM_UP) {
              used = SYSTEM.getProcessCpuTime();
            }
            long start = System.nanoTime();
            step(trainer, manager, input);
            nanos[step] = System.nanoTime() - start;
          }
          if (group.rank() == 0) {
            System.out.printf(
                Locale.ROOT,
                "step %.2f ms, mean processor time of rank 0 %.2f ms, communication that backward"
                    + " did not hide in the mean %.2f ms%n",
                median(nanos),
                (SYSTEM.getProcessCpuTime() - used) / 1e6 / steps,
                parallel.reducer().meanStatistics().exposed().toNanos() / 1e6);
          }
        }
      }
    }
  }

  private static void step(Trainer trainer, NDManager manager, NDList input) {
    try (NDManager scope = manager.newSubManager();
        GradientCollector collector = trainer.newGradientCollector()) {
      input.attach(scope);
      NDList output = trainer.forward(input);
      collector.backward(output.singletonOrThrow().square().mean());
      input.attach(manager);
    }
    trainer.notifyListeners(listener -> listener.onTrainingBatch(trainer, null));
    trainer.step();
  }

  private static double median(long[] nanos) {
    long[] timed = Arrays.stream(nanos).skip(WARM_UP).sorted().toArray();
    return timed[timed.length / 2] / 1e6;
  }
}
