package dev.tutti.gradients;

import dev.tutti.DType;
import dev.tutti.Device;
import dev.tutti.Tensor;
import java.lang.foreign.Arena;

/**
 * Allocates the memory of buckets on the device of their parameters, and moves gradients there. It
 * works in the calling thread's current stream.
 */
public interface BucketAllocator {
  /** Allocates host memory that ranks of the host can read where they can, and no other. */
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
   * Allocates a contiguous tensor of one dimension, of any content.
   *
   * @param arena owns the memory; closed when the reducer is done with it
   * @param device where the parameters of the bucket are
   * @param dtype their element type
   * @param numel how many elements
   */
  Tensor allocate(Arena arena, Device device, DType dtype, long numel);

  /**
   * Sets all elements to zero.
   *
   * @param tensor one that this allocated, or a contiguous part of it
   */
  default void zero(Tensor tensor) {
    tensor.segment().fill((byte) 0);
  }

  /**
   * Copies elements in row-major order.
   *
   * @param target on the device of the source, of the same type and number of elements
   * @param source where from
   */
  default void copy(Tensor target, Tensor source) {
    target.copyFrom(source);
  }
}
