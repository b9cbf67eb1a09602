package dev.tutti.gradients.optimizer;

import static java.lang.foreign.ValueLayout.JAVA_FLOAT_UNALIGNED;

import dev.tutti.Tensor;
import java.lang.foreign.MemorySegment;

/** A block of elements of a float32 tensor, in an array, since loops over arrays are vectorized. */
final class FloatBlock {
  /** The number of elements in a block; several blocks fit into the first-level cache together. */
  static final int SIZE = 2048;

  /** The elements; those past the end of the tensor may have any value. */
  final float[] elements = new float[SIZE];

  /**
   * Reads the elements that start at a position, up to a whole block, or fewer at the end of the
   * tensor.
   */
  void load(Tensor tensor, long start) {
    MemorySegment.copy(
        tensor.segment(), JAVA_FLOAT_UNALIGNED, start * 4, elements, 0, count(tensor, start));
  }

  /** Writes the elements back. */
  void store(Tensor tensor, long start) {
    MemorySegment.copy(
        elements, 0, tensor.segment(), JAVA_FLOAT_UNALIGNED, start * 4, count(tensor, start));
  }

  private static int count(Tensor tensor, long start) {
    return (int) Math.min(SIZE, tensor.numel() - start);
  }
}
