package dev.tutti.gradients;

import dev.tutti.DType;
import dev.tutti.Device;
import dev.tutti.ProcessGroup;
import dev.tutti.SymmetricMemory;
import dev.tutti.Tensor;
import dev.tutti.spi.DeviceTensors;
import java.lang.foreign.Arena;
import java.util.Optional;

/**
 * An allocator of the memory of buckets on the device of their parameters, which also moves
 * gradients there. It works on the calling thread's current stream.
 */
public interface BucketAllocator {
  /**
   * Returns the allocator of reducers that are given no other: host memory, which other ranks of
   * the host can read where possible, and on devices the memory of the {@link
   * dev.tutti.spi.DeviceTensors} on the class path, such as those of tutti-backend-cuda.
   */
  static BucketAllocator standard() {
    return StandardAllocator.INSTANCE;
  }

  /**
   * Allocates a contiguous, one-dimensional tensor of uninitialized elements.
   *
   * @param arena the arena that owns the memory
   * @param device the device of the bucket's parameters
   * @param dtype the element type of the parameters, or of compressed gradients
   * @param numel the number of elements
   */
  Tensor allocate(Arena arena, Device device, DType dtype, long numel);

  /**
   * Allocates memory for all buckets on a device, to which all ranks can write, so that they can
   * reduce buckets while the device computes; empty, as by default, if each bucket is to be
   * allocated by itself. All ranks call this together, and must return alike.
   *
   * @param group the reducer's group
   * @param device the device of some parameters
   * @param byteSize the number of bytes
   */
  default Optional<SymmetricMemory> allocateShared(
      ProcessGroup group, Device device, long byteSize) {
    return Optional.empty();
  }

  /**
   * Sets all elements to zero.
   *
   * @param tensor a tensor that this allocator returned, or a contiguous part of one
   */
  default void zero(Tensor tensor) {
    tensor.segment().fill((byte) 0);
  }

  /**
   * Copies elements in row-major order.
   *
   * @param target a tensor on the source's device, of the same type and number of elements
   * @param source the tensor to copy from
   */
  default void copy(Tensor target, Tensor source) {
    target.copyFrom(source);
  }

  /**
   * Returns the provider of the streams in which this allocator works on a device, so that a
   * reducer can reduce buckets there while backward continues; empty if it must not, which is the
   * default.
   *
   * @param device the device of some parameters
   */
  default Optional<DeviceTensors> streams(Device device) {
    return Optional.empty();
  }

  /**
   * Copies elements to another type, for hooks that compress gradients on a device; on the host
   * they convert elements themselves.
   *
   * @param target a contiguous tensor on the source's device, of the same number of elements
   * @param source a contiguous tensor; both are of float32, float64, float16 or bfloat16
   * @throws UnsupportedOperationException if this allocator does not convert
   */
  default void convert(Tensor target, Tensor source) {
    throw new UnsupportedOperationException(
        "the allocator cannot convert " + source.describe() + " to " + target.describe());
  }
}
