package dev.tutti.djl;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDScope;
import ai.djl.nn.Parameter;
import ai.djl.training.GradientCollector;
import ai.djl.training.Trainer;
import ai.djl.util.Pair;
import dev.tutti.ProcessGroup;
import dev.tutti.Tensor;
import dev.tutti.gradients.GradientReducer;
import dev.tutti.gradients.ReducerOptions;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.Collections;
import java.util.IdentityHashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.SequencedMap;
import java.util.Set;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/**
 * The gradients of a model's parameters, reduced over all ranks.
 *
 * <p>Each gradient's array is made to use part of a bucket as its memory. If the engine does so, on
 * the host, the gradients are in the bucket and nothing is copied. If it copies the data instead,
 * the gradients are copied into the buckets and back in each step. Each step checks which case
 * applies, since a program may replace gradients. The buckets live as long as the model, as the
 * engine does not say when it no longer uses their memory.
 */
final class ReducedGradients implements AutoCloseable {
  private final Trainer trainer;
  private final List<NDArray> parameters = new ArrayList<>();
  private final List<Pair<String, Parameter>> trained = new ArrayList<>();
  private final List<Pair<String, Parameter>> others = new ArrayList<>();
  private final GradientReducer reducer;

  /** Compares the parameters and copies those of rank 0; called by all ranks together. */
  ReducedGradients(ProcessGroup group, Trainer trainer, ReducerOptions options) {
    this.trainer = trainer;
    List<String> names = new ArrayList<>();
    List<NDArray> buffers = new ArrayList<>();
    // A block that is used twice lists its parameters twice; arrays equal each other by content.
    Set<NDArray> seen = Collections.newSetFromMap(new IdentityHashMap<>());
    for (Pair<String, Parameter> each : trainer.getModel().getBlock().getParameters()) {
      NDArray array = requireUsable(trainer, each);
      if (!seen.add(array)) {
        continue;
      }
      if (each.getValue().requiresGradient()) {
        names.add(each.getKey());
        trained.add(each);
        parameters.add(array);
      } else {
        others.add(each);
        buffers.add(array);
      }
    }
    defineGradients(trainer);
    try (NDScope scope = new NDScope()) {
      scope.suppressNotUsedWarning();
      List<Tensor> views = parameters.stream().map(ArrayMemory::read).toList();
      List<Tensor> bufferViews = buffers.stream().map(ArrayMemory::read).toList();
      reducer =
          new GradientReducer(
              group,
              views,
              options
                  .withNames(names)
                  .withBuffers(bufferViews)
                  .withGradients(List.of())
                  .withoutRebuild()
                  .withAccumulation()
                  .withAllocator(new ModelMemory(trainer.getModel().getNDManager()))
                  .withDigested(this::digested));
      writeCopies(parameters, views);
      writeCopies(buffers, bufferViews);
      for (int i = 0; i < parameters.size(); i++) {
        NDArray gradient = parameters.get(i).getGradient();
        reducer.gradient(i).copyFrom(ArrayMemory.read(gradient));
        gradient.set(bucketBuffer(i));
      }
    }
  }

  private static NDArray requireUsable(Trainer trainer, Pair<String, Parameter> parameter) {
    if (!parameter.getValue().isInitialized()) {
      throw new IllegalStateException(
          "the parameter "
              + parameter.getKey()
              + " has no values yet: call Trainer.initialize before start");
    }
    NDArray array = parameter.getValue().getArray();
    if (trainer.getDevices().length != 1 || !trainer.getDevices()[0].equals(array.getDevice())) {
      throw new IllegalArgumentException(
          "each rank trains on one device, that of its model, but this trainer has "
              + List.of(trainer.getDevices())
              + " and the parameter "
              + parameter.getKey()
              + " is on "
              + array.getDevice());
    }
    return array;
  }

  /**
   * Gives every parameter its own gradient, even a parameter that a step does not use. A number as
   * factor would do only until a garbage collection: DJL does not keep its memory for backward.
   */
  private void defineGradients(Trainer trainer) {
    try (NDScope scope = new NDScope();
        GradientCollector collector = trainer.newGradientCollector()) {
      scope.suppressNotUsedWarning();
      for (NDArray parameter : parameters) {
        collector.backward(parameter.sub(parameter).sum());
      }
    }
  }

  private static void writeCopies(List<NDArray> arrays, List<Tensor> views) {
    for (int i = 0; i < arrays.size(); i++) {
      if (!ArrayMemory.isShared(arrays.get(i), views.get(i))) {
        ArrayMemory.write(arrays.get(i), views.get(i));
      }
    }
  }

  private ByteBuffer bucketBuffer(int index) {
    return reducer.gradient(index).segment().asByteBuffer().order(ByteOrder.nativeOrder());
  }

  /** Returns what all ranks must have alike now, which leaves out each rank's own statistics. */
  private SequencedMap<String, Tensor> digested() {
    SequencedMap<String, Tensor> all = new LinkedHashMap<>();
    try (NDScope scope = new NDScope()) {
      scope.suppressNotUsedWarning();
      for (Pair<String, Parameter> each : trainer.getModel().getBlock().getParameters()) {
        Parameter parameter = each.getValue();
        boolean isStatistic =
            switch (parameter.getType()) {
              case RUNNING_MEAN, RUNNING_VAR -> true;
              case OTHER -> trained.stream().noneMatch(its -> its.getValue().equals(parameter));
              default -> false;
            };
        if (!isStatistic && parameter.isInitialized()) {
          Tensor view = ArrayMemory.read(parameter.getArray());
          boolean isShared = ArrayMemory.isShared(parameter.getArray(), view);
          Tensor kept = isShared ? view : Tensor.allocate(view.dtype(), view.shape());
          if (!isShared) {
            kept.copyFrom(view);
          }
          all.put("'" + each.getKey() + "'", kept);
        }
      }
    }
    return all;
  }

  @SuppressWarnings("ReferenceEquality") // another array with equal elements is another array
  private void requireUnchanged() {
    for (Pair<String, Parameter> each : others) {
      if (each.getValue().requiresGradient()) {
        throw reducer.fail(
            "the parameter '"
                + each.getKey()
                + "' required no gradient at start(), so ranks do not reduce its gradient, but it"
                + " requires one now; unfreeze parameters before start(), or train on with another"
                + " trainer and listener");
      }
    }
    for (int i = 0; i < parameters.size(); i++) {
      Parameter parameter = trained.get(i).getValue();
      if (!parameter.isInitialized() || parameter.getArray() != parameters.get(i)) {
        throw reducer.fail(
            "the parameter '"
                + trained.get(i).getKey()
                + "' got another array after start(), or was closed; train on with another trainer"
                + " and listener");
      }
    }
  }

  /** Averages all gradients over all ranks. */
  void reduce() {
    requireUnchanged();
    try (NDScope scope = new NDScope()) {
      scope.suppressNotUsedWarning();
      @Nullable NDArray[] copied = new @Nullable NDArray[parameters.size()];
      for (int i = copied.length - 1; i >= 0; i--) {
        if (!trained.get(i).getValue().requiresGradient()) {
          continue; // frozen since start(): the reducer allows that or names the parameter
        }
        copied[i] = copyUnlessShared(i);
        reducer.ready(i);
      }
      reducer.await();
      for (int i = 0; i < copied.length; i++) {
        if (copied[i] != null) {
          copied[i].set(bucketBuffer(i));
        }
      }
    }
  }

  /** Returns a gradient that it copied into its bucket, or null if the gradient is there. */
  private @Nullable NDArray copyUnlessShared(int index) {
    try {
      NDArray gradient = parameters.get(index).getGradient();
      Tensor bucket = reducer.gradient(index);
      if (ArrayMemory.isShared(gradient, bucket)) {
        return null;
      }
      bucket.copyFrom(ArrayMemory.read(gradient));
      return gradient;
    } catch (RuntimeException e) {
      throw reducer.fail(
          "the gradient of the parameter '"
              + trained.get(index).getKey()
              + "' cannot be read, although the parameter is not frozen: "
              + e);
    }
  }

  /** Returns views of all parameters, by name, in the same order on all ranks. */
  SequencedMap<String, Tensor> parameters() {
    SequencedMap<String, Tensor> all = new LinkedHashMap<>();
    try (NDScope scope = new NDScope()) {
      scope.suppressNotUsedWarning();
      for (Pair<String, Parameter> each :
          Stream.concat(trained.stream(), others.stream()).toList()) {
        NDArray array = each.getValue().getArray();
        Tensor view = ArrayMemory.read(array);
        if (!ArrayMemory.isShared(array, view)) {
          throw new UnsupportedOperationException(
              "the engine hands out copies of the parameter '"
                  + each.getKey()
                  + "', not its memory; copy it to a tensor of your own before each save, and back"
                  + " after a load");
        }
        all.put(each.getKey(), view);
      }
    }
    return all;
  }

  GradientReducer reducer() {
    return reducer;
  }

  /** Ends the reduction; the gradients stay in the buckets. */
  @Override
  public void close() {
    reducer.close();
  }
}
