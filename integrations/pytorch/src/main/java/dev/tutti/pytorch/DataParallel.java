package dev.tutti.pytorch;

import dev.tutti.ProcessGroup;
import dev.tutti.Registration;
import dev.tutti.Tensor;
import dev.tutti.gradients.GradientException;
import dev.tutti.gradients.GradientReducer;
import dev.tutti.gradients.ReducerOptions;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.SequencedMap;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicReference;
import org.bytedeco.pytorch.Module;
import org.bytedeco.pytorch.StringTensorDict;
import org.bytedeco.pytorch.StringTensorDictItem;
import org.bytedeco.pytorch.global.torch;
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
 * the previous gradient of the same backward and thread is complete, if it was written; {@link
 * #await} signals this for the others. No gradient is therefore reduced while autograd writes it,
 * and {@code torch.grad}, which calls the hooks but writes no gradient, does not disturb a step.
 * The program may clear gradients before a backward, but not change them between a backward and
 * {@link #await}, since they are being reduced.
 *
 * <p>Gradients accumulate until the program clears them: a parameter that a backward does not use
 * counts with the gradient that it has.
 */
public final class DataParallel implements AutoCloseable {
  /** A call of a hook, within one of autograd's tasks: a backward, or a call of torch.grad. */
  private record Arrival(int index, int task) {}

  private final List<ModuleParameter> parameters = new ArrayList<>();
  private final SequencedMap<String, org.bytedeco.pytorch.Tensor> frozen = new LinkedHashMap<>();
  private final Module module;
  private final ProcessGroup group;
  private final GradientReducer reducer;
  private final Map<Thread, Arrival> latest = new ConcurrentHashMap<>();
  private final boolean[] marked;
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
   * @param module the module to train; afterwards it must not get other parameters, move its
   *     parameters to other memory or another device, or train parameters that required no gradient
   * @param group the group of all ranks that train the module; it needs a backend for the host
   * @param options how to reduce; names, buffers, gradients, the allocator and what a digest
   *     compares are taken from the module
   * @throws GradientException on all ranks, if their parameters or options differ; describes the
   *     first difference, and leaves the group usable
   * @throws IllegalArgumentException if no parameter requires a gradient, a parameter belongs to
   *     another instance that is open, or is of a kind that {@link Tensors#of} or the reducer
   *     refuses
   */
  public DataParallel(Module module, ProcessGroup group, ReducerOptions options) {
    this.module = module;
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
        frozen.put(item.key().getString(), parameter);
        buffers.add(Tensors.of(parameter));
      } else if (trained.stream().noneMatch(parameter::is_same)) {
        ModuleParameter.refuseIfTrained(item.key().getString(), parameter);
        names.add(item.key().getString());
        tensors.add(Tensors.of(parameter));
        trained.add(parameter);
      }
    }
    for (org.bytedeco.pytorch.Tensor buffer : module.buffers().get()) {
      buffers.add(Tensors.of(buffer));
    }
    ReducerOptions complete =
        options
            .withNames(names)
            .withBuffers(buffers)
            .withGradients(List.of())
            .withAllocator(new TorchAllocator())
            .withAccumulation()
            .withDigested(this::onHost);
    reducer = new GradientReducer(group, tensors, complete);
    marked = new boolean[trained.size()];
    for (int i = 0; i < marked.length; i++) {
      int index = i;
      parameters.add(new ModuleParameter(names.get(i), trained.get(i), () -> comes(index)));
      bind(i);
    }
  }

  /** Returns all parameters that the module has now, in their current memory or copied from it. */
  private SequencedMap<String, Tensor> onHost() {
    SequencedMap<String, Tensor> all = new LinkedHashMap<>();
    StringTensorDict named = module.named_parameters();
    for (long i = 0; i < named.size(); i++) {
      StringTensorDictItem item = named.get(i);
      try (org.bytedeco.pytorch.Tensor onHost = item.access().cpu()) {
        all.put("'" + item.key().getString() + "'", Tensors.of(onHost));
      }
    }
    return all;
  }

  /**
   * Notes that a gradient may be about to be written, and completes the one before it, if that was
   * written. What came before in another task is left to {@link #await}, as the program may have
   * cleared gradients in between.
   */
  private void comes(int index) {
    guard(
        () -> {
          int task = torch.get_current_graph_task_id();
          Arrival before = latest.get(Thread.currentThread());
          if (before != null
              && before.task() == task
              && parameters.get(before.index()).isWritten()) {
            complete(before.index());
          }
          // A join on the reducer may have formed new buckets since the last step.
          bind(index);
          parameters.get(index).expect();
          latest.put(Thread.currentThread(), new Arrival(index, task));
        });
  }

  private void bind(int index) {
    parameters.get(index).use(reducer.gradient(index));
  }

  private void complete(int index) {
    parameters.get(index).collect();
    marked[index] = true;
    reducer.ready(index);
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
   * @throws GradientException if a parameter got no gradient, or has changed in a way that the
   *     constructor rules out, with its name, or if the step failed here or on another rank, naming
   *     the lost rank, if there is one
   * @throws RuntimeException if PyTorch cannot write a gradient into its bucket; the group is then
   *     aborted, so that the other ranks do not wait
   */
  public void await() {
    latest.clear();
    guard(this::finishBackward);
    RuntimeException failed = failure.get();
    if (failed != null) {
      // The reducer has already notified the other ranks of its own failures.
      if (!(failed instanceof GradientException) && !group.isClosed()) {
        group.abort("a gradient did not get into its bucket: " + firstLine(failed));
      }
      throw failed;
    }
    reducer.await();
    for (int i = 0; i < parameters.size(); i++) {
      bind(i);
      if (reducer.isSynchronizing() && !marked[i] && reducer.isUsed(i)) {
        parameters.get(i).putView();
      }
      marked[i] = false;
    }
  }

  private void finishBackward() {
    frozen.forEach(
        (name, parameter) -> {
          if (parameter.requires_grad()) {
            throw reducer.fail(
                "the parameter '"
                    + name
                    + "' required no gradient when DataParallel was created, so ranks do not reduce"
                    + " its gradient, but it requires one now; create DataParallel after unfreezing"
                    + " it");
          }
        });
    for (int i = 0; i < parameters.size(); i++) {
      // Before a gradient completes the step of the other ranks.
      String complaint = parameters.get(i).complaint(marked[i]);
      if (complaint != null) {
        throw reducer.fail(complaint);
      }
    }
    for (int i = 0; i < parameters.size(); i++) {
      if (parameters.get(i).isChangedInStep()) {
        complete(i);
      } else if (reducer.isSynchronizing() && !marked[i]) {
        bind(i);
        parameters.get(i).collectUnused();
      }
    }
  }

  /** Describes a failure without the native stack trace in PyTorch's messages. */
  private static String firstLine(RuntimeException failed) {
    return failed.toString().lines().findFirst().orElse("");
  }

  /**
   * Lets several backwards accumulate gradients on each rank without reducing them, until the
   * registration is closed. Each backward ends with {@link #await}. The first backward after
   * closing the registration reduces the sum; if several are open, after closing the last.
   *
   * @throws IllegalStateException if called amid a step, or after {@link #close}; closing the
   *     registration amid a step throws it too
   */
  public Registration noSync() {
    return reducer.noSync();
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
