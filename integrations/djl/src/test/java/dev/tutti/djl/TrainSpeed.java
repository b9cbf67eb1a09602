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
import dev.tutti.ProcessGroup;
import java.util.Locale;

/**
 * Times steps of a network of 1.9 million parameters with batches of 512, which all ranks divide
 * among them; {@code benchmarks/training} runs it. PyTorch has one thread on each rank.
 *
 * <p>Arguments: the number of steps that are timed.
 */
public final class TrainSpeed {
  private static final int BATCH = 512;
  private static final int WARM_UP = 10;

  private TrainSpeed() {}

  /** Runs one rank; rank 0 prints the mean milliseconds of a step. */
  public static void main(String[] args) {
    int steps = Integer.parseInt(args[0]);
    System.setProperty("ai.djl.pytorch.num_threads", "1");
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
          long start = 0;
          for (int step = -WARM_UP; step < steps; step++) {
            if (step == 0) {
              group.barrier();
              start = System.nanoTime();
            }
            step(trainer, manager, input);
          }
          group.barrier();
          if (group.rank() == 0) {
            System.out.printf(
                Locale.ROOT,
                "step %.2f ms, of which communication that backward did not hide %.2f ms%n",
                (System.nanoTime() - start) / 1e6 / steps,
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
}
