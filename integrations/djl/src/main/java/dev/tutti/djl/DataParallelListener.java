package dev.tutti.djl;

import ai.djl.Model;
import ai.djl.training.Trainer;
import ai.djl.training.TrainingResult;
import ai.djl.training.listener.TrainingListener;
import ai.djl.training.listener.TrainingListenerAdapter;
import dev.tutti.DType;
import dev.tutti.ProcessGroup;
import dev.tutti.ReduceOp;
import dev.tutti.Tensor;
import dev.tutti.gradients.GradientReducer;
import dev.tutti.gradients.ReducerOptions;
import java.io.IOException;
import java.nio.file.Path;
import java.util.Map;
import java.util.SequencedMap;
import java.util.TreeMap;
import org.jspecify.annotations.Nullable;

/**
 * A listener that trains a model on all ranks of a group: between backward and {@link
 * Trainer#step}, each batch's gradients are averaged over all ranks.
 *
 * <p>Every rank has a trainer with the same model and one such listener. It calls {@link #start}
 * once the model is initialized, and trains the same number of batches as the other ranks; {@link
 * ShardedSampler} divides a data set accordingly. {@link ai.djl.training.EasyTrain} notifies
 * listeners after backward; a handwritten loop calls {@link Trainer#notifyListeners} or {@link
 * #reduceGradients} at that point.
 *
 * <p>All methods are called by the training thread. The group remains the program's, and is used
 * only during these calls.
 */
public final class DataParallelListener extends TrainingListenerAdapter {
  private final ProcessGroup group;
  private final ReducerOptions options;
  private @Nullable ReducedGradients gradients;

  /**
   * Creates a listener with the default options.
   *
   * @param group the group of all ranks that train the model
   */
  public DataParallelListener(ProcessGroup group) {
    this(group, ReducerOptions.DEFAULT);
  }

  /**
   * Creates a listener.
   *
   * @param group the group of all ranks that train the model
   * @param options the options for buckets and their hook, the same on all ranks; names, buffers,
   *     the order of buckets, the allocator and what a digest compares are set by the listener
   */
  public DataParallelListener(ProcessGroup group, ReducerOptions options) {
    this.group = group;
    this.options = options;
  }

  /**
   * Compares the parameters of all ranks and copies those of rank 0 to all, including parameters
   * that have no gradient. All ranks call this after {@link Trainer#initialize} and before the
   * first batch.
   *
   * @param trainer the trainer that has this listener, with one device
   * @throws dev.tutti.gradients.GradientException on all ranks, if their parameters differ in
   *     names, shapes or types; describes the first difference
   * @throws IllegalStateException if a parameter has no values yet, or this method was already
   *     called
   * @throws IllegalArgumentException if the trainer has several devices or not that of its model,
   *     or if an array has a type that ranks cannot exchange
   */
  public void start(Trainer trainer) {
    if (gradients != null) {
      throw new IllegalStateException(
          "this listener of rank " + group.rank() + " was already started");
    }
    gradients = new ReducedGradients(group, trainer, options);
  }

  /**
   * Averages the gradients of all parameters over all ranks. All ranks call this after backward, or
   * let {@link #onTrainingBatch} do so.
   *
   * @throws dev.tutti.gradients.GradientException if the reduction fails here or on another rank,
   *     naming the lost rank, if there is one; or on all ranks, naming the parameter, if one has
   *     another array than at {@link #start}, was unfrozen since then, or was frozen and the
   *     options do not allow unused parameters
   * @throws IllegalStateException before {@link #start}
   */
  public void reduceGradients() {
    started().reduce();
  }

  @Override
  public void onTrainingBatch(Trainer trainer, BatchData batchData) {
    reduceGradients();
  }

  /**
   * Ends what {@link #start} began. The gradients keep their values, in memory that lives as long
   * as the model.
   */
  @Override
  public void onTrainingEnd(Trainer trainer) {
    if (gradients != null) {
      gradients.close();
      gradients = null;
    }
  }

  /**
   * Returns the reducer, for its statistics.
   *
   * @throws IllegalStateException before {@link #start}
   */
  public GradientReducer reducer() {
    return started().reducer();
  }

  /**
   * Returns all parameters by name, in the memory of the model's arrays, such as a checkpoint saves
   * and loads; to be used as long as the model is open.
   *
   * @return views, in the same order on all ranks
   * @throws IllegalStateException before {@link #start}
   * @throws UnsupportedOperationException if the engine hands out copies of its arrays, as it does
   *     for those on a GPU
   */
  public SequencedMap<String, Tensor> parameters() {
    return started().parameters();
  }

  /**
   * Averages the results of the evaluators and the loss over all ranks. All ranks call this, with
   * results of the same evaluators.
   *
   * @param result the result of this rank
   * @return the means, by the names used in the result
   */
  public Map<String, Float> mean(TrainingResult result) {
    Map<String, Float> means = new TreeMap<>(result.getEvaluations());
    Tensor values = Tensor.allocate(DType.FLOAT64, means.size());
    int next = 0;
    for (float value : means.values()) {
      values.setDouble(next++, value);
    }
    group.allReduce(values, ReduceOp.AVG);
    next = 0;
    for (Map.Entry<String, Float> mean : means.entrySet()) {
      mean.setValue((float) values.getDouble(next++));
    }
    return means;
  }

  /**
   * Saves a model on rank 0, and returns on each rank once it is saved. All ranks call this.
   *
   * @param model the model to save
   * @param path the path of the folder, on rank 0
   * @param name the name of the model
   * @throws IOException on the other ranks, if rank 0 cannot save it for whatever reason; rank 0
   *     throws what the model threw
   */
  public void save(Model model, Path path, @Nullable String name) throws IOException {
    Tensor failed = Tensor.of(1);
    try {
      if (group.rank() == 0) {
        model.save(path, name);
        failed.setLong(0, 0);
      }
    } finally {
      group.broadcast(failed, 0);
    }
    if (failed.getLong(0) != 0) {
      throw new IOException("rank 0 could not save the model in its folder " + path);
    }
  }

  /**
   * Returns the listener on rank 0, and one that does nothing on all other ranks; use it for
   * listeners that log or save. The listener must not call the group.
   *
   * @param listener the listener for rank 0
   */
  public TrainingListener onRankZero(TrainingListener listener) {
    return group.rank() == 0 ? listener : new TrainingListenerAdapter() {};
  }

  private ReducedGradients started() {
    if (gradients == null) {
      throw new IllegalStateException(
          "call start(trainer) after Trainer.initialize and before the first batch, on all ranks;"
              + " rank "
              + group.rank()
              + " did not");
    }
    return gradients;
  }
}
