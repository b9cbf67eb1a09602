package dev.tutti.cuda.memory;

import dev.tutti.DType;
import dev.tutti.Device;
import dev.tutti.Tensor;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.Arrays;
import java.util.function.Consumer;

/** Contiguous tensors in the memory of a device. */
public final class BlockTensors {
  private BlockTensors() {}

  /**
   * Allocates a tensor that lives as long as an arena.
   *
   * @param device the device of the allocator
   * @param stream the stream whose work uses the memory first
   * @param made receives the block before the tensor is created
   * @param free frees the block
   */
  public static Tensor allocate(
      DeviceAllocator allocator,
      Device device,
      BlockStream stream,
      Consumer<DeviceBlock> made,
      Consumer<DeviceBlock> free,
      Arena arena,
      DType dtype,
      long... shape) {
    long bytes = byteSize(dtype, shape);
    DeviceBlock block = allocator.allocate(Math.max(bytes, 1), stream);
    made.accept(block);
    MemorySegment segment;
    try {
      segment =
          MemorySegment.ofAddress(block.address())
              .reinterpret(bytes, arena, _ -> free.accept(block));
    } catch (RuntimeException e) {
      free.accept(block);
      throw e;
    }
    return view(device, segment, dtype, shape);
  }

  /** Views device memory as a tensor. */
  public static Tensor view(Device device, MemorySegment segment, DType dtype, long... shape) {
    return Tensor.wrap(segment, dtype, shape, denseStrides(shape), device);
  }

  /**
   * Returns the number of bytes of a tensor.
   *
   * @throws IllegalArgumentException if a size is negative
   */
  public static long byteSize(DType dtype, long... shape) {
    long numel = 1;
    for (long size : shape) {
      if (size < 0) {
        throw new IllegalArgumentException("size must not be negative: " + Arrays.toString(shape));
      }
      numel = Math.multiplyExact(numel, size);
    }
    return Math.multiplyExact(numel, dtype.byteSize());
  }

  private static long[] denseStrides(long[] shape) {
    long[] strides = new long[shape.length];
    long stride = 1;
    for (int i = shape.length - 1; i >= 0; i--) {
      strides[i] = stride;
      stride *= Math.max(shape[i], 1);
    }
    return strides;
  }
}
