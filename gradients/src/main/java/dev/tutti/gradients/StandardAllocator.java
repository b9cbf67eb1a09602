package dev.tutti.gradients;

import dev.tutti.DType;
import dev.tutti.Device;
import dev.tutti.Tensor;
import dev.tutti.spi.DeviceTensors;
import java.lang.foreign.Arena;
import java.util.Map;
import java.util.ServiceLoader;
import java.util.concurrent.ConcurrentHashMap;
import java.util.stream.Stream;

/** The allocator that uses the device tensors of the backends on the class path. */
final class StandardAllocator implements BucketAllocator {
  static final StandardAllocator INSTANCE = new StandardAllocator();

  private final Map<String, DeviceTensors> found = new ConcurrentHashMap<>();

  private StandardAllocator() {}

  private DeviceTensors of(Device device) {
    DeviceTensors known = found.get(device.type());
    return known == null ? find(device) : known;
  }

  /** Searches the context class loader and that of this class, as backends are searched. */
  private DeviceTensors find(Device device) {
    DeviceTensors first =
        Stream.concat(
                ServiceLoader.load(DeviceTensors.class).stream(),
                ServiceLoader.load(DeviceTensors.class, StandardAllocator.class.getClassLoader())
                    .stream())
            .map(ServiceLoader.Provider::get)
            .filter(provider -> provider.deviceType().equals(device.type()))
            .findFirst()
            .orElseThrow(
                () ->
                    new IllegalArgumentException(
                        "parameters are on "
                            + device
                            + ", and no module on the class path allocates tensors there;"
                            + " ReducerOptions.withAllocator takes an allocator"));
    if (first.spiVersion() != DeviceTensors.SPI_VERSION) {
      throw new IllegalArgumentException(
          ("%s has version %d of DeviceTensors, but this is version %d; use the same release of all"
                  + " modules")
              .formatted(
                  first.getClass().getName(), first.spiVersion(), DeviceTensors.SPI_VERSION));
    }
    found.put(device.type(), first);
    return first;
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

  @Override
  public void convert(Tensor target, Tensor source) {
    of(target.device()).copy(target, source);
  }
}
