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
import java.util.TreeMap;
import org.jspecify.annotations.Nullable;

/**
 * Trains a model on all ranks of a group: each batch's gradients become means over all ranks
 * between backward and {@link Trainer#step}.
 *
 * <p>Every rank has a trainer with the same model and one such listener, calls {@link #start} once
 * the model is initialized, and trains as many batches as the others, which {@link ShardedSampler}
 * divides among them. {@link ai.djl.training.EasyTrain} calls listeners after backward; a loop that
 * is written by hand calls {@link Trainer#notifyListeners} or {@link #reduceGradients} there.
 *
 * <p>The thread that trains calls all methods. The group stays the program's; it is used during
 * calls alone.
 */
public final class DataParallelListener extends TrainingListenerAdapter {
  private final ProcessGroup group;
  private final ReducerOptions options;
  private @Nullable ReducedGradients gradients;

  /**
   * Creates a listener with the default options.
   *
   * @param group of all ranks that train the model
   */
  public DataParallelListener(ProcessGroup group) {
    this(group, ReducerOptions.DEFAULT);
  }

  /**
   * Creates a listener.
   *
   * @param group of all ranks that train the model
   * @param options for buckets and their hook, the same on all ranks; names, buffers and the order
   *     of buckets are the listener's
   */
  public DataParallelListener(ProcessGroup group, ReducerOptions options) {
    this.group = group;
    this.options = options;
  }

  /**
   * Compares the parameters of all ranks and copies those of rank 0 to all, also those that have no
   * gradient. All ranks call it after {@link Trainer#initialize} and before the first batch.
   *
   * @param trainer that has this listener, with one device
   * @throws dev.tutti.gradients.GradientException on all ranks, if their parameters differ in
   *     names, shapes or types, with the first difference
   * @throws IllegalStateException if a parameter has no values yet, or this was called already
   * @throws IllegalArgumentException if the trainer has several devices, or another one than its
   *     model, or arrays of a type that ranks cannot exchange
   */
  public void start(Trainer trainer) {
    if (gradients != null) {
      throw new IllegalStateException("this listener of rank " + group.rank() + " has started");
    }
    gradients = new ReducedGradients(group, trainer, options);
  }

  /**
   * Makes the gradients of all parameters means over all ranks. All ranks call it after backward,
   * or let {@link #onTrainingBatch} do so.
   *
   * @throws dev.tutti.gradients.GradientException if that fails here or on another rank, with the
   *     rank that is lost, if one is
   * @throws IllegalStateException before {@link #start}
   */
  public void reduceGradients() {
    started().reduce();
  }

  @Override
  public void onTrainingBatch(Trainer trainer, BatchData batchData) {
    reduceGradients();
  }

  /** Frees what {@link #start} made. Gradients stay what they are, in memory of the engine. */
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
   * Returns the means over all ranks of what evaluators and the loss found. All ranks call it, with
   * results of the same evaluators.
   *
   * @param result of this rank
   * @return the means, by the names of the result
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
   * Saves a model on rank 0, and returns on each rank when that is done. All ranks call it.
   *
   * @param model to save
   * @param path of the folder, on rank 0
   * @param name of the model
   * @throws IOException on all ranks, if rank 0 cannot save it
   */
  public void save(Model model, Path path, @Nullable String name) throws IOException {
    IOException failure = null;
    if (group.rank() == 0) {
      try {
        model.save(path, name);
      } catch (IOException e) {
        failure = e;
      }
    }
    Tensor failed = Tensor.of(failure == null ? 0 : 1);
    group.broadcast(failed, 0);
    if (failure != null) {
      throw failure;
    }
    if (failed.getLong(0) != 0) {
      throw new IOException("rank 0 could not save the model in its " + path);
    }
  }

  /**
   * Returns a listener on rank 0, and one that does nothing on all others: for those that log or
   * save. It must not call the group.
   *
   * @param listener for rank 0
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
