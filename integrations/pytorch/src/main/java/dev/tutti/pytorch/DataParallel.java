package dev.tutti.pytorch;

import dev.tutti.ProcessGroup;
import dev.tutti.Registration;
import dev.tutti.Tensor;
import dev.tutti.gradients.GradientException;
import dev.tutti.gradients.GradientReducer;
import dev.tutti.gradients.ReducerOptions;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicReference;
import org.bytedeco.pytorch.Module;
import org.bytedeco.pytorch.StringTensorDict;
import org.bytedeco.pytorch.StringTensorDictItem;
import org.jspecify.annotations.Nullable;

/**
 * Data-parallel training of a module on all ranks of a group: gradients are averaged over all ranks
 * while backward runs (PyTorch: {@code DistributedDataParallel}).
 *
 * <p>A step consists of {@code loss.backward()}, then {@link #await}, then the optimizer's step.
 * All ranks take the same steps. Methods are called by one thread at a time, which need not be the
 * one that calls backward; backward may use threads of its own. From the beginning of backward to
 * the end of {@link #await}, the program must not call other collectives of the group.
 *
 * <p>A hook on each parameter is called just before its gradient is written. The hook signals that
 * the previous gradient written by the same thread is complete; {@link #await} signals this for the
 * last one. No gradient is therefore reduced while autograd writes it.
 */
public final class DataParallel implements AutoCloseable {
  private final List<ModuleParameter> parameters = new ArrayList<>();
  private final ProcessGroup group;
  private final GradientReducer reducer;
  private final Map<Thread, Integer> written = new ConcurrentHashMap<>();
  private final boolean[] marked;
  private boolean synchronizing = true;
  private final AtomicReference<@Nullable RuntimeException> failure = new AtomicReference<>();

  /**
   * Creates an instance with the default options, as {@link #DataParallel(Module, ProcessGroup,
   * ReducerOptions)} does.
   *
   * @param module the module to train
   * @param group the group of all ranks that train the module
   */
  public DataParallel(Module module, ProcessGroup group) {
    this(module, group, ReducerOptions.DEFAULT);
  }

  /**
   * Compares the parameters of all ranks, copies those of rank 0 to all, including buffers and
   * parameters that require no gradient, and registers hooks. All ranks of the group call this.
   *
   * @param module the module to train; afterwards it must not get other parameters, or move its
   *     parameters to other memory or another device
   * @param group the group of all ranks that train the module; it needs a backend for the host
   * @param options how to reduce; names, buffers and gradients are taken from the module
   * @throws GradientException on all ranks, if their parameters or options differ; describes the
   *     first difference, and leaves the group usable
   * @throws IllegalArgumentException if no parameter requires a gradient, or a parameter is of a
   *     kind that {@link Tensors#of} or the reducer refuses
   */
  public DataParallel(Module module, ProcessGroup group, ReducerOptions options) {
    this.group = group;
    List<String> names = new ArrayList<>();
    List<Tensor> tensors = new ArrayList<>();
    List<Tensor> buffers = new ArrayList<>();
    List<org.bytedeco.pytorch.Tensor> trained = new ArrayList<>();
    StringTensorDict named = module.named_parameters();
    for (long i = 0; i < named.size(); i++) {
      StringTensorDictItem item = named.get(i);
      org.bytedeco.pytorch.Tensor parameter = new org.bytedeco.pytorch.Tensor(item.access());
      if (!parameter.requires_grad()) {
        buffers.add(Tensors.of(parameter));
      } else if (trained.stream().noneMatch(parameter::is_same)) {
        names.add(item.key().getString());
        tensors.add(Tensors.of(parameter));
        trained.add(parameter);
      }
    }
    for (org.bytedeco.pytorch.Tensor buffer : module.buffers().get()) {
      buffers.add(Tensors.of(buffer));
    }
    ReducerOptions complete = options.withNames(names).withBuffers(buffers);
    if (tensors.stream().anyMatch(each -> !each.device().isCpu())) {
      complete = complete.withAllocator(new TorchAllocator());
    }
    reducer = new GradientReducer(group, tensors, complete);
    marked = new boolean[trained.size()];
    for (int i = 0; i < marked.length; i++) {
      int index = i;
      parameters.add(new ModuleParameter(trained.get(i), () -> comes(index)));
      bind(i);
    }
  }

  /**
   * Notes that a gradient is about to be written, which means that the one before it is complete.
   */
  private void comes(int index) {
    Integer before = written.put(Thread.currentThread(), index);
    if (before != null) {
      complete(before);
    }
    // A join on the reducer may have formed new buckets since the last step.
    guard(() -> bind(index));
  }

  private void bind(int index) {
    parameters.get(index).use(reducer.gradient(index));
  }

  private void complete(int index) {
    guard(
        () -> {
          parameters.get(index).collect();
          marked[index] = true;
          reducer.ready(index);
        });
  }

  /** Keeps exceptions from passing through the frames of autograd; {@link #await} throws them. */
  private void guard(Runnable action) {
    if (failure.get() != null) {
      return;
    }
    try {
      action.run();
    } catch (RuntimeException e) {
      failure.compareAndSet(null, e);
    }
  }

  /**
   * Ends a backward, and returns when the gradients of all parameters have been averaged over all
   * ranks; within {@link #noSync}, only ends the backward.
   *
   * @throws GradientException if a parameter got no gradient, with its name, or if the step failed
   *     here or on another rank, naming the lost rank, if there is one
   * @throws RuntimeException if PyTorch cannot write a gradient into its bucket; the group is then
   *     aborted, so that the other ranks do not wait
   */
  public void await() {
    written.values().forEach(this::complete);
    written.clear();
    RuntimeException failed = failure.get();
    if (failed != null) {
      // The reducer has already told the other ranks of its own failures.
      if (!(failed instanceof GradientException) && !group.isClosed()) {
        group.abort("a gradient did not get into its bucket: " + firstLine(failed));
      }
      throw failed;
    }
    reducer.await();
    for (int i = 0; i < marked.length; i++) {
      bind(i);
      if (synchronizing && !marked[i] && reducer.isUsed(i)) {
        parameters.get(i).putView();
      }
      marked[i] = false;
    }
  }

  /** Describes a failure without the native stack trace in PyTorch's messages. */
  private static String firstLine(RuntimeException failed) {
    return failed.toString().lines().findFirst().orElse("");
  }

  /**
   * Lets several backwards accumulate gradients on each rank without reducing them, until the
   * registration is closed. Each backward ends with {@link #await}. The first backward after
   * closing the registration reduces the sum.
   *
   * @throws IllegalStateException if called amid a step; closing the registration amid a step
   *     throws it too
   */
  public Registration noSync() {
    Registration noSync = reducer.noSync();
    synchronizing = false;
    return () -> {
      noSync.close();
      synchronizing = true;
    };
  }

  /** Returns the reducer, for its statistics and buckets. */
  public GradientReducer reducer() {
    return reducer;
  }

  /**
   * Removes the hooks and frees the buckets; gradients keep their values, in PyTorch's memory. The
   * module and the group are unaffected, except that closing amid a step fails that step on all
   * ranks. Further calls do nothing.
   */
  @Override
  public void close() {
    parameters.forEach(ModuleParameter::close);
    parameters.clear();
    reducer.close();
  }
}
