package dev.tutti.cuda;

import dev.tutti.DType;
import dev.tutti.Device;
import dev.tutti.ProcessGroup;
import dev.tutti.SymmetricMemory;
import dev.tutti.Tensor;
import dev.tutti.cuda.provider.CudaDeviceTensors;
import dev.tutti.gradients.BucketAllocator;
import dev.tutti.spi.DeviceTensors;
import java.lang.foreign.Arena;
import java.util.Optional;

/** Allocates buckets on fake devices and on the host. */
record DeviceBuckets(CudaDeviceTensors devices) implements BucketAllocator {
  /** Uses the devices of a machine. */
  static DeviceBuckets of(FakeMachine machine) {
    return new DeviceBuckets(new CudaDeviceTensors(() -> machine.cuda));
  }

  @Override
  public Tensor allocate(Arena arena, Device device, DType dtype, long numel) {
    return device.isCpu()
        ? BucketAllocator.standard().allocate(arena, device, dtype, numel)
        : devices.allocate(arena, device, dtype, numel);
  }

  @Override
  public Optional<SymmetricMemory> allocateShared(
      ProcessGroup group, Device device, long byteSize) {
    return BucketAllocator.standard().allocateShared(group, device, byteSize);
  }

  @Override
  public void zero(Tensor tensor) {
    if (tensor.device().isCpu()) {
      BucketAllocator.standard().zero(tensor);
    } else {
      devices.zero(tensor);
    }
  }

  @Override
  public void copy(Tensor target, Tensor source) {
    if (target.device().isCpu()) {
      BucketAllocator.standard().copy(target, source);
    } else {
      devices.copy(target, source);
    }
  }

  @Override
  public Optional<DeviceTensors> streams(Device device) {
    return Optional.of(devices);
  }

  @Override
  public void convert(Tensor target, Tensor source) {
    devices.copy(target, source);
  }
}
