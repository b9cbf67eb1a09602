package dev.tutti.djl;

import ai.djl.ndarray.NDManager;
import dev.tutti.DType;
import dev.tutti.Device;
import dev.tutti.Tensor;
import dev.tutti.gradients.BucketAllocator;
import java.lang.foreign.Arena;
import java.util.UUID;
import java.util.concurrent.atomic.AtomicReference;
import org.jspecify.annotations.Nullable;

/** An allocator of buckets on the host that live at least as long as a manager of arrays. */
final class ModelMemory implements BucketAllocator {
  private final NDManager manager;

  ModelMemory(NDManager manager) {
    this.manager = manager;
  }

  @Override
  public Tensor allocate(Arena arena, Device device, DType dtype, long numel) {
    Tensor tensor = Tensor.allocate(dtype, numel);
    AtomicReference<@Nullable Tensor> kept = new AtomicReference<>(tensor);
    manager.attachInternal(UUID.randomUUID().toString(), () -> kept.set(null));
    return tensor;
  }
}
