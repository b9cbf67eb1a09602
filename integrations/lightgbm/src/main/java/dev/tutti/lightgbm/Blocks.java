package dev.tutti.lightgbm;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Arrays;

/** The positions of the ranks' blocks in LightGBM's memory: one after another, in bytes. */
final class Blocks {
  private final int[] starts;
  private final int[] lengths;

  private Blocks(int[] starts, int[] lengths) {
    this.starts = starts;
    this.lengths = lengths;
  }

  /**
   * Reads two arrays from native memory.
   *
   * @param starts the int32 array of the blocks' start positions
   * @param lengths the int32 array of the blocks' lengths
   * @param count the number of blocks
   * @throws IllegalArgumentException if there is a gap between blocks, or a negative length
   */
  static Blocks of(MemorySegment starts, MemorySegment lengths, int count) {
    Blocks blocks = new Blocks(ints(starts, count), ints(lengths, count));
    long end = 0;
    for (int i = 0; i < count; i++) {
      if (blocks.starts[i] != end || blocks.lengths[i] < 0) {
        throw new IllegalArgumentException("blocks are not contiguous: " + blocks);
      }
      end += blocks.lengths[i];
    }
    return blocks;
  }

  @SuppressWarnings("restricted")
  private static int[] ints(MemorySegment address, int count) {
    return address
        .reinterpret(count * ValueLayout.JAVA_INT.byteSize())
        .toArray(ValueLayout.JAVA_INT);
  }

  void requireRanks(int size) {
    if (starts.length != size) {
      throw new IllegalArgumentException(
          "LightGBM has blocks for " + starts.length + " ranks, not for " + size);
    }
  }

  int count() {
    return starts.length;
  }

  int start(int rank) {
    return starts[rank];
  }

  int length(int rank) {
    return lengths[rank];
  }

  long[] lengths() {
    long[] all = new long[lengths.length];
    for (int i = 0; i < all.length; i++) {
      all[i] = lengths[i];
    }
    return all;
  }

  int longest() {
    int longest = 0;
    for (int length : lengths) {
      longest = Math.max(longest, length);
    }
    return longest;
  }

  boolean areEqual() {
    for (int length : lengths) {
      if (length != lengths[0]) {
        return false;
      }
    }
    return true;
  }

  long end() {
    int last = starts.length - 1;
    return (long) starts[last] + lengths[last];
  }

  @Override
  public String toString() {
    return "starts " + Arrays.toString(starts) + ", lengths " + Arrays.toString(lengths);
  }
}
