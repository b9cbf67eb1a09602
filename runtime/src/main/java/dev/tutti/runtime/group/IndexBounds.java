package dev.tutti.runtime.group;

import static java.lang.foreign.ValueLayout.JAVA_LONG_UNALIGNED;

import dev.tutti.Tensor;
import java.lang.foreign.MemorySegment;

/** Finds indices of sparse host tensors that are out of bounds. */
final class IndexBounds {
  private static final int BLOCK = 1024;

  private IndexBounds() {}

  /**
   * Finds the first index that is outside of a dimension.
   *
   * @param indices the indices: int64, contiguous, of shape [sparse dims, nnz]
   * @return the number of the entry; -1 if there is none
   */
  static long firstOutside(Tensor indices, int dimension, long size) {
    long count = indices.size(1);
    long[] block = new long[(int) Math.min(BLOCK, count)];
    for (long done = 0; done < count; done += BLOCK) {
      int n = (int) Math.min(BLOCK, count - done);
      long offset = (dimension * count + done) * 8;
      MemorySegment.copy(indices.segment(), JAVA_LONG_UNALIGNED, offset, block, 0, n);
      if (isOutside(block, n, size)) {
        for (int i = 0; i < n; i++) {
          if (block[i] < 0 || block[i] >= size) {
            return done + i;
          }
        }
      }
    }
    return -1;
  }

  private static boolean isOutside(long[] indices, int count, long size) {
    long signs = 0;
    for (int i = 0; i < count; i++) {
      signs |= indices[i] | (size - 1 - indices[i]);
    }
    return signs < 0;
  }
}
