package dev.tutti.pytorch;

import dev.tutti.Tensor;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.bytedeco.pytorch.TensorBase;
import org.bytedeco.pytorch.VoidTensorHook;
import org.jspecify.annotations.Nullable;

/** A parameter of a module, with the bucket view that becomes its gradient. */
final class ModuleParameter implements AutoCloseable {
  private final org.bytedeco.pytorch.Tensor parameter;
  private final Hook hook;
  private final int handle;
  private @Nullable Tensor bucket;
  private org.bytedeco.pytorch.@Nullable Tensor view;

  /**
   * Registers a hook that runs before the parameter adds to its gradient.
   *
   * @param parameter the parameter, which requires a gradient
   * @param comes the action, called by the thread that adds
   */
  ModuleParameter(org.bytedeco.pytorch.Tensor parameter, Runnable comes) {
    this.parameter = parameter;
    hook = new Hook(comes);
    handle = parameter.register_hook(hook);
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

  /** Makes sure that the gradient is in the bucket, copying it there if it is not. */
  void collect() {
    if (isInBucket()) {
      return;
    }
    try (org.bytedeco.pytorch.Tensor gradient = parameter.grad();
        org.bytedeco.pytorch.Tensor detached = gradient.detach()) {
      view().copy_(detached);
    }
    putView();
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
          && Tensors.addressOf(gradient) == bucket.segment().address();
    }
  }

  /** Removes the hook, and gives the gradient its own memory. */
  @Override
  public void close() {
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
     * garbage collected before.
     */
    private static final Set<Hook> REGISTERED = ConcurrentHashMap.newKeySet();

    private final Runnable comes;

    Hook(Runnable comes) {
      this.comes = comes;
      REGISTERED.add(this);
    }

    @Override
    public void close() {
      super.close();
      REGISTERED.remove(this);
    }

    @Override
    public void call(TensorBase gradient) {
      comes.run();
    }
  }
}
