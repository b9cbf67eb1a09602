package dev.tutti.gradients;

import dev.tutti.DType;
import dev.tutti.Device;
import dev.tutti.Tensor;
import dev.tutti.spi.DeviceTensors;
import java.lang.foreign.Arena;
import java.util.ServiceLoader;
import org.jspecify.annotations.Nullable;

/** The allocator that uses the device tensors of the backends on the class path. */
final class StandardAllocator implements BucketAllocator {
  static final StandardAllocator INSTANCE = new StandardAllocator();

  /** The providers, found when a device is first used. */
  private static final class Found {
    private static final Iterable<DeviceTensors> PROVIDERS =
        ServiceLoader.load(DeviceTensors.class, StandardAllocator.class.getClassLoader()).stream()
            .map(ServiceLoader.Provider::get)
            .toList();
  }

  private StandardAllocator() {}

  private static DeviceTensors of(Device device) {
    DeviceTensors found = find(device.type());
    if (found == null) {
      throw new IllegalArgumentException(
          "parameters are on "
              + device
              + ", and no module on the class path allocates tensors there;"
              + " ReducerOptions.withAllocator takes an allocator");
    }
    if (found.spiVersion() != DeviceTensors.SPI_VERSION) {
      throw new IllegalArgumentException(
          "%s has version %d of DeviceTensors, but this is version %d; use the same release of all modules"
              .formatted(
                  found.getClass().getName(), found.spiVersion(), DeviceTensors.SPI_VERSION));
    }
    return found;
  }

  private static @Nullable DeviceTensors find(String type) {
    for (DeviceTensors provider : Found.PROVIDERS) {
      if (provider.deviceType().equals(type)) {
        return provider;
      }
    }
    return null;
  }

  @Override
  public Tensor allocate(Arena arena, Device device, DType dtype, long numel) {
    return device.isCpu()
        ? Tensor.allocate(arena, dtype, numel)
        : of(device).allocate(arena, device, dtype, numel);
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
}
