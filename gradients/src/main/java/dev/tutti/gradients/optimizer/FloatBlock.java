package dev.tutti.gradients.optimizer;

import static java.lang.foreign.ValueLayout.JAVA_FLOAT_UNALIGNED;

import dev.tutti.Tensor;
import java.lang.foreign.MemorySegment;

/** Some elements of a tensor of float32 in an array, since loops over arrays become vector code. */
final class FloatBlock {
  /** The elements of a block; some of them fit the first cache together. */
  static final int SIZE = 2048;

  /** The elements; those behind the last one of the tensor may have any value. */
  final float[] elements = new float[SIZE];

  /** Reads the elements from a place on, as many as there are, up to a whole block. */
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
