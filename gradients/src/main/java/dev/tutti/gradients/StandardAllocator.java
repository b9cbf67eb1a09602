package dev.tutti.gradients;

import dev.tutti.BackendException;
import dev.tutti.Capabilities;
import dev.tutti.DType;
import dev.tutti.Device;
import dev.tutti.ProcessGroup;
import dev.tutti.SymmetricMemory;
import dev.tutti.Tensor;
import dev.tutti.spi.DeviceTensors;
import java.lang.System.Logger.Level;
import java.lang.foreign.Arena;
import java.util.Optional;

/** The allocator that uses the device tensors of the backends on the class path. */
final class StandardAllocator implements BucketAllocator {
  private static final System.Logger LOG = System.getLogger(StandardAllocator.class.getName());
  static final StandardAllocator INSTANCE = new StandardAllocator();

  private StandardAllocator() {}

  private static DeviceTensors of(Device device) {
    return DeviceTensors.find(device.type())
        .orElseThrow(
            () ->
                new IllegalArgumentException(
                    "parameters are on "
                        + device
                        + ", and no module on the class path allocates tensors there;"
                        + " ReducerOptions.withAllocator takes an allocator"));
  }

  @Override
  public Tensor allocate(Arena arena, Device device, DType dtype, long numel) {
    return device.isCpu()
        ? Tensor.allocate(arena, dtype, numel)
        : of(device).allocate(arena, device, dtype, numel);
  }

  @Override
  public Optional<SymmetricMemory> allocateShared(
      ProcessGroup group, Device device, long byteSize) {
    if (!group.capabilities(device).has(Capabilities.Feature.SYMMETRIC_MEMORY)) {
      return Optional.empty();
    }
    try {
      return Optional.of(group.allocateSymmetric(byteSize, device.type()));
    } catch (BackendException e) {
      LOG.log(Level.DEBUG, "buckets are not shared", e);
      return Optional.empty();
    }
  }

  @Override
  public void zero(Tensor tensor) {
    if (tensor.device().isCpu()) {
      tensor.segment().fill((byte) 0);
    } else {
      of(tensor.device()).zero(tensor);
    }
  }

  @Override
  public void copy(Tensor target, Tensor source) {
    if (target.device().isCpu()) {
      target.copyFrom(source);
    } else {
      of(target.device()).copy(target, source);
    }
  }

  @Override
  public Optional<DeviceTensors> streams(Device device) {
    return DeviceTensors.find(device.type());
  }

  @Override
  public void convert(Tensor target, Tensor source) {
    of(target.device()).copy(target, source);
  }
}
