package dev.tutti.pytorch;

import dev.tutti.Tensor;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.bytedeco.pytorch.TensorBase;
import org.bytedeco.pytorch.VoidTensorHook;
import org.jspecify.annotations.Nullable;

/** A parameter of a module, with the bucket view that becomes its gradient. */
final class ModuleParameter implements AutoCloseable {
  /*
   * The hook runs before autograd writes the gradient, and also where autograd writes none, in
   * torch.grad(). A write adds to the gradient, which raises its version, or puts another tensor
   * there. So the hook notes the tensor and its version, and a later look shows whether autograd
   * wrote. The next hook of the same backward and thread looks first, before the program can change
   * the gradient; the thread that awaits the step looks at what is left. The map of hooks in
   * DataParallel orders the two threads.
   */

  /** Where PyTorch keeps the parameters that are registered; their hooks keep them there. */
  private static final Set<Long> TRAINED = ConcurrentHashMap.newKeySet();

  private final org.bytedeco.pytorch.Tensor parameter;
  private final String name;
  private final long address;
  private final int type;
  private final Hook hook;
  private final int handle;
  private final long identity;
  private @Nullable Tensor bucket;
  private org.bytedeco.pytorch.@Nullable Tensor view;
  private boolean expected;
  private boolean changedBefore;
  private long tensorBefore;
  private long versionBefore;
  private long tensorCollected;
  private long versionCollected;

  /**
   * Registers a hook that runs before the parameter adds to its gradient.
   *
   * @param name the parameter's name in its module
   * @param parameter the parameter, which requires a gradient
   * @param comes the action, called by the thread that adds
   * @throws IllegalArgumentException if the parameter is already registered
   */
  ModuleParameter(String name, org.bytedeco.pytorch.Tensor parameter, Runnable comes) {
    this.parameter = parameter;
    this.name = name;
    address = Tensors.addressOf(parameter);
    type = parameter.scalar_type().value;
    identity = parameter.unsafeGetTensorImpl().address();
    refuseIfTrained(name, parameter);
    TRAINED.add(identity);
    hook = new Hook(comes);
    handle = parameter.register_hook(hook);
  }

  /** Throws if a parameter is registered, as two owners would reduce the same gradient. */
  static void refuseIfTrained(String name, org.bytedeco.pytorch.Tensor parameter) {
    if (TRAINED.contains(parameter.unsafeGetTensorImpl().address())) {
      throw new IllegalArgumentException(
          "the parameter '"
              + name
              + "' belongs to another DataParallel that is open; close that one first, or give both"
              + " one module that has the parameters of both");
    }
  }

  /** Sets the bucket to use from now on; its content later becomes the gradient. */
  void use(Tensor newBucket) {
    if (newBucket == bucket) {
      return;
    }
    boolean had = isInBucket();
    org.bytedeco.pytorch.Tensor old = view;
    bucket = newBucket;
    view = Tensors.toTorch(newBucket);
    if (had) {
      putView();
    }
    if (old != null) {
      old.close();
    }
  }

  /** Notes the gradient's state, as autograd may be about to write it. */
  void expect() {
    changedBefore |= expected && isChanged();
    try (org.bytedeco.pytorch.Tensor gradient = parameter.grad()) {
      boolean defined = gradient.defined();
      tensorBefore = defined ? gradient.unsafeGetTensorImpl().address() : 0;
      versionBefore = defined ? gradient._version() : 0;
    }
    expected = true;
  }

  /** Returns, once, whether the gradient was written after the last call of the hook. */
  boolean isWritten() {
    boolean written = expected && isChanged();
    expected = false;
    changedBefore &= !written;
    return written;
  }

  /**
   * Returns, once, whether the gradient changed after any call of the hook since the last step. If
   * the program cleared it, that counts too, and does no harm: the gradient then adds what it holds
   * to the mean, as if it were unused.
   */
  boolean isChangedInStep() {
    boolean changed = isWritten() || changedBefore;
    changedBefore = false;
    return changed;
  }

  private boolean isChanged() {
    try (org.bytedeco.pytorch.Tensor gradient = parameter.grad()) {
      return gradient.defined()
          && (gradient.unsafeGetTensorImpl().address() != tensorBefore
              || gradient._version() != versionBefore);
    }
  }

  /** Makes sure that the gradient is in the bucket, copying it there if it is not. */
  void collect() {
    if (!isInBucket()) {
      try (org.bytedeco.pytorch.Tensor gradient = parameter.grad();
          org.bytedeco.pytorch.Tensor detached = gradient.detach();
          org.bytedeco.pytorch.Tensor dense = dense(detached)) {
        view().copy_(dense);
      }
      putView();
    }
    try (org.bytedeco.pytorch.Tensor gradient = parameter.grad()) {
      tensorCollected = gradient.unsafeGetTensorImpl().address();
      versionCollected = gradient._version();
    }
  }

  /** Returns a dense tensor with the same values, which may be copied into the bucket. */
  private org.bytedeco.pytorch.Tensor dense(org.bytedeco.pytorch.Tensor gradient) {
    if (!gradient.has_storage()) {
      return gradient.to_dense();
    }
    boolean isView = bucket != null && Tensors.addressOf(gradient) == bucket.segment().address();
    return isView ? gradient.clone() : new org.bytedeco.pytorch.Tensor(gradient);
  }

  private boolean isChangedSinceCollected() {
    if (expected || changedBefore) {
      return false;
    }
    try (org.bytedeco.pytorch.Tensor gradient = parameter.grad()) {
      return !gradient.defined()
          || gradient.unsafeGetTensorImpl().address() != tensorCollected
          || gradient._version() != versionCollected;
    }
  }

  /**
   * Gives the bucket what this rank adds to the mean without a backward: the gradient, or zeros.
   */
  void collectUnused() {
    boolean defined;
    try (org.bytedeco.pytorch.Tensor gradient = parameter.grad()) {
      defined = gradient.defined();
    }
    if (defined) {
      collect();
    } else {
      view().zero_();
    }
  }

  /**
   * Returns what the program did to the parameter that no rank can make good, or null.
   *
   * @param collected whether the gradient was collected in this step
   */
  @Nullable String complaint(boolean collected) {
    if (parameter.scalar_type().value != type || Tensors.addressOf(parameter) != address) {
      return "the parameter '"
          + name
          + "' got other memory or another type after DataParallel was created, as by set_data or"
          + " Module.to; close this DataParallel and create another one after such a change";
    }
    if (collected && isChangedSinceCollected()) {
      return "the program changed the gradient of the parameter '"
          + name
          + "' between backward and await(), while ranks reduced it; clear and change gradients"
          + " before backward or after await()";
    }
    return null;
  }

  /** Makes the content of the bucket the gradient. */
  void putView() {
    try (org.bytedeco.pytorch.Tensor gradient = parameter.mutable_grad()) {
      gradient.put(view());
    }
  }

  private org.bytedeco.pytorch.Tensor view() {
    if (view == null) {
      throw new IllegalStateException("the parameter has no bucket yet");
    }
    return view;
  }

  private boolean isInBucket() {
    try (org.bytedeco.pytorch.Tensor gradient = parameter.grad()) {
      return bucket != null
          && gradient.defined()
          && gradient.has_storage()
          && Tensors.addressOf(gradient) == bucket.segment().address()
          && hasStridesOfBucket(gradient, bucket);
    }
  }

  private static boolean hasStridesOfBucket(org.bytedeco.pytorch.Tensor gradient, Tensor bucket) {
    long[] strides = bucket.strides();
    for (int i = 0; i < strides.length; i++) {
      if (gradient.stride(i) != strides[i] && bucket.size(i) > 1) {
        return false;
      }
    }
    return true;
  }

  /** Removes the hook, and gives the gradient its own memory. */
  @Override
  public void close() {
    TRAINED.remove(identity);
    parameter.remove_hook(handle);
    hook.close();
    if (isInBucket()) {
      try (org.bytedeco.pytorch.Tensor gradient = parameter.mutable_grad();
          org.bytedeco.pytorch.Tensor own = view().clone()) {
        gradient.put(own);
      }
    }
    if (view != null) {
      view.close();
    }
    bucket = null;
  }

  private static final class Hook extends VoidTensorHook {
    /**
     * The registered hooks; autograd calls them as long as they are registered, so they must not be
     * garbage collected before. A pointer's hash is its address, which closing sets to zero.
     */
    private static final Set<Hook> REGISTERED = ConcurrentHashMap.newKeySet();

    private final Runnable comes;

    Hook(Runnable comes) {
      this.comes = comes;
      REGISTERED.add(this);
    }

    @Override
    public void close() {
      REGISTERED.remove(this);
      super.close();
    }

    @Override
    public void call(TensorBase gradient) {
      comes.run();
    }
  }
}
