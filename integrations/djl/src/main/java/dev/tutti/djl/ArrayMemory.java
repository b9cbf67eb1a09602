package dev.tutti.djl;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.types.DataType;
import dev.tutti.DType;
import dev.tutti.Tensor;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;

/** Access to the memory of DJL arrays, for which an engine hands out direct buffers or copies. */
final class ArrayMemory {
  private ArrayMemory() {}

  /**
   * Returns an array's elements, in the array's own memory if the engine allows that.
   *
   * @throws IllegalArgumentException if ranks cannot reduce the array's type
   */
  static Tensor read(NDArray array) {
    ByteBuffer buffer = array.toByteBuffer(true).order(ByteOrder.nativeOrder());
    return Tensor.wrap(buffer, dtype(array.getDataType()), array.getShape().getShape());
  }

  /**
   * Returns whether a tensor returned by {@link #read} shares the array's memory. An engine that
   * copies gives each copy its own memory for as long as the scope of arrays is open.
   */
  static boolean isShared(NDArray array, Tensor tensor) {
    MemorySegment memory = tensor.segment();
    MemorySegment again = read(array).segment();
    return memory.isNative() && again.isNative() && memory.address() == again.address();
  }

  /** Copies a tensor's elements into an array, through a new buffer that the array may keep. */
  static void write(NDArray array, Tensor tensor) {
    ByteBuffer copy = ByteBuffer.allocateDirect(Math.toIntExact(tensor.byteSize()));
    MemorySegment.ofBuffer(copy).copyFrom(tensor.segment());
    array.set(copy.order(ByteOrder.nativeOrder()));
  }

  private static DType dtype(DataType type) {
    return switch (type) {
      case FLOAT32 -> DType.FLOAT32;
      case FLOAT64 -> DType.FLOAT64;
      case FLOAT16 -> DType.FLOAT16;
      case BFLOAT16 -> DType.BFLOAT16;
      case INT8 -> DType.INT8;
      case UINT8 -> DType.UINT8;
      case BOOLEAN -> DType.BOOL;
      case INT16 -> DType.INT16;
      case INT32 -> DType.INT32;
      case INT64 -> DType.INT64;
      default ->
          throw new IllegalArgumentException("ranks cannot exchange DJL arrays of type " + type);
    };
  }
}
