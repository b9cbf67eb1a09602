package dev.tutti.gradients;

import dev.tutti.DType;
import dev.tutti.Device;
import dev.tutti.Tensor;
import java.lang.foreign.Arena;

/**
 * An allocator of the memory of buckets on the device of their parameters, which also moves
 * gradients there. It works on the calling thread's current stream.
 */
public interface BucketAllocator {
  /**
   * An allocator of host memory, which other ranks of the host can read where possible; it supports
   * no other device.
   */
  BucketAllocator HOST =
      (arena, device, dtype, numel) -> {
        if (!device.isCpu()) {
          throw new IllegalArgumentException(
              "parameters are on "
                  + device
                  + ": ReducerOptions.withAllocator says how to allocate memory there");
        }
        return Tensor.allocate(arena, dtype, numel);
      };

  /**
   * Allocates a contiguous, one-dimensional tensor of uninitialized elements.
   *
   * @param arena the arena that owns the memory, closed when the reducer is done with it
   * @param device the device of the bucket's parameters
   * @param dtype the element type of the parameters
   * @param numel the number of elements
   */
  Tensor allocate(Arena arena, Device device, DType dtype, long numel);

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
}
