package dev.tutti.gloo;

import dev.tutti.Tensor;
import java.lang.foreign.MemorySegment;

/**
 * Vectors that are their first elements again and again, made and checked at the speed of copies.
 */
final class Repeating {
  private Repeating() {}

  /** Copies the first elements of a vector over the rest of it. */
  static void fill(Tensor vector, long period) {
    MemorySegment all = bytes(vector);
    for (long done = period * vector.dtype().byteSize(); done < all.byteSize(); done *= 2) {
      MemorySegment.copy(all, 0, all, done, Math.min(done, all.byteSize() - done));
    }
  }

  /**
   * Returns how many elements of a vector say all: those of one period if the others repeat them,
   * else every element.
   */
  static long telling(Tensor vector, long period) {
    MemorySegment all = bytes(vector);
    long shift = Math.min(period * vector.dtype().byteSize(), all.byteSize());
    boolean repeats = all.asSlice(shift).mismatch(all.asSlice(0, all.byteSize() - shift)) < 0;
    return repeats ? Math.min(period, vector.numel()) : vector.numel();
  }

  private static MemorySegment bytes(Tensor vector) {
    return vector.segment().asSlice(0, vector.byteSize());
  }
}
