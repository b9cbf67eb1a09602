package dev.tutti.djl;

import ai.djl.Model;
import ai.djl.ndarray.types.Shape;
import ai.djl.training.DefaultTrainingConfig;
import ai.djl.training.EasyTrain;
import ai.djl.training.Trainer;
import ai.djl.training.dataset.Dataset;
import ai.djl.training.loss.Loss;
import ai.djl.translate.TranslateException;
import dev.tutti.ProcessGroup;
import java.io.IOException;

/** The compiled example of the package; {@link GuideTest} runs similar code. */
final class DjlSnippets {
  private DjlSnippets() {}

  static void train(ProcessGroup group, Model model, Dataset dataset)
      throws IOException, TranslateException {
    // @start region="train"
    DataParallelListener parallel = new DataParallelListener(group);
    DefaultTrainingConfig config =
        new DefaultTrainingConfig(Loss.softmaxCrossEntropyLoss()).addTrainingListeners(parallel);
    try (Trainer trainer = model.newTrainer(config)) {
      trainer.initialize(new Shape(16, 8));
      parallel.start(trainer); // sends the parameters of rank 0 to all ranks
      EasyTrain.fit(trainer, 2, dataset, null); // from a ShardedSampler
    }
    // @end
  }
}
