package dev.tutti.djl.digits;

import ai.djl.Model;
import ai.djl.engine.Engine;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.types.Shape;
import ai.djl.nn.Activation;
import ai.djl.nn.SequentialBlock;
import ai.djl.nn.core.Linear;
import ai.djl.training.DefaultTrainingConfig;
import ai.djl.training.EasyTrain;
import ai.djl.training.Trainer;
import ai.djl.training.dataset.ArrayDataset;
import ai.djl.training.evaluator.Accuracy;
import ai.djl.training.listener.TrainingListener;
import ai.djl.training.listener.TrainingListenerAdapter;
import ai.djl.training.loss.Loss;
import ai.djl.training.optimizer.Optimizer;
import ai.djl.training.tracker.Tracker;
import dev.tutti.ProcessGroup;
import dev.tutti.djl.DataParallelListener;
import dev.tutti.djl.ShardedSampler;
import dev.tutti.examples.digits.Digits;
import dev.tutti.examples.digits.Digits.Image;
import java.util.List;
import java.util.Locale;
import java.util.Map;

/** Trains a two-layer network to read handwritten digits, with DJL on any number of ranks. */
public final class TrainDigits {
  private static final int EPOCHS = 15;
  private static final int BATCH = 32;
  private static final int SEED = 42;

  private TrainDigits() {}

  /**
   * Trains as one rank of a job.
   *
   * @param args the epoch after which this rank kills itself, or none
   */
  public static void main(String[] args) throws Exception {
    int lastEpoch = args.length > 0 ? Integer.parseInt(args[0]) : -1;
    // Unpacks and loads libtorch before any deadline starts.
    Engine engine = Engine.getInstance();
    try (ProcessGroup group = ProcessGroup.init()) {
      engine.setRandomSeed(SEED + group.rank());
      train(group, lastEpoch);
    }
  }

  private static void train(ProcessGroup group, int lastEpoch) throws Exception {
    Digits digits = Digits.load();
    DataParallelListener parallel = new DataParallelListener(group);
    DefaultTrainingConfig config =
        new DefaultTrainingConfig(Loss.softmaxCrossEntropyLoss())
            .addEvaluator(new Accuracy())
            .optOptimizer(Optimizer.sgd().setLearningRateTracker(Tracker.fixed(0.2f)).build())
            .addTrainingListeners(TrainingListener.Defaults.basic())
            .addTrainingListeners(parallel, new Report(group, parallel, lastEpoch));
    ShardedSampler sampler = new ShardedSampler(group, BATCH / group.size()).withSeed(SEED);
    try (Model model = Model.newInstance("digits");
        NDManager manager = model.getNDManager().newSubManager()) {
      model.setBlock(
          new SequentialBlock()
              .add(Linear.builder().setUnits(32).build())
              .add(Activation::relu)
              .add(Linear.builder().setUnits(Digits.CLASSES).build()));
      ArrayDataset training = dataset(manager, digits.training(), sampler.withDroppedTail());
      ArrayDataset test = dataset(manager, digits.test(), sampler.withoutShuffle());
      try (Trainer trainer = model.newTrainer(config)) {
        trainer.initialize(new Shape(BATCH, Digits.PIXELS));
        parallel.start(trainer);
        EasyTrain.fit(trainer, EPOCHS, training, test);
      }
    }
  }

  private static ArrayDataset dataset(
      NDManager manager, List<Image> images, ShardedSampler sampler) {
    float[][] pixels = images.stream().map(Image::pixels).toArray(float[][]::new);
    int[] labels = images.stream().mapToInt(Image::digit).toArray();
    return new ArrayDataset.Builder()
        .setData(manager.create(pixels))
        .optLabels(manager.create(labels))
        .setSampling(sampler)
        .build();
  }

  /** A listener that prints the means of an epoch on rank 0. */
  private static final class Report extends TrainingListenerAdapter {
    private final ProcessGroup group;
    private final DataParallelListener parallel;
    private final int lastEpoch;
    private int epoch;

    Report(ProcessGroup group, DataParallelListener parallel, int lastEpoch) {
      this.group = group;
      this.parallel = parallel;
      this.lastEpoch = lastEpoch;
    }

    @Override
    public void onEpoch(Trainer trainer) {
      epoch++;
      Map<String, Float> mean = parallel.mean(trainer.getTrainingResult());
      if (group.rank() == 0) {
        System.out.printf(
            Locale.ROOT,
            "epoch %2d: loss %.6f, test accuracy %.2f %%%n",
            epoch,
            mean.get("train_loss"),
            100 * mean.get("validate_Accuracy"));
      }
      if (epoch == lastEpoch) {
        Runtime.getRuntime().halt(137);
      }
    }
  }
}
