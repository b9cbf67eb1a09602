package dev.tutti.cpu.sparse;

import static java.lang.foreign.ValueLayout.JAVA_LONG_UNALIGNED;

import java.lang.foreign.MemorySegment;

/** The places of sparse tensors in ascending order, with the entries at each place. */
public final class SparsePlaces {
  private static final int BLOCK = 1024;

  private final int count;
  private final long[] keys;
  private final int[] order;
  private final int[] starts;

  /**
   * Creates a list of places.
   *
   * @param count the number of places
   * @param keys the keys of the places, ascending; the array may be longer
   * @param order all entries, ordered by place, then by number
   * @param starts for each place, where its entries begin in {@code order}, followed by where the
   *     last ones end
   */
  SparsePlaces(int count, long[] keys, int[] order, int[] starts) {
    this.count = count;
    this.keys = keys;
    this.order = order;
    this.starts = starts;
  }

  /** Groups the entries of sorted keys, in place. */
  static SparsePlaces ofSorted(long[] keys, int[] order) {
    int[] starts = new int[keys.length + 1];
    int count = 0;
    long last = -1;
    for (int i = 0; i < keys.length; i++) {
      long key = keys[i];
      if (key != last) {
        keys[count] = key;
        starts[count++] = i;
        last = key;
      }
    }
    starts[count] = keys.length;
    return new SparsePlaces(count, keys, order, starts);
  }

  /** Returns the number of places. */
  public int count() {
    return count;
  }

  /** Returns all entries, by place. */
  int[] order() {
    return order;
  }

  /** Returns where the entries of each place begin in the order. */
  int[] starts() {
    return starts;
  }

  /** Writes the index of each place in each dimension. */
  public void writeIndices(MemorySegment indices, long[] sizes) {
    long[] rest = new long[BLOCK];
    long[] block = new long[BLOCK];
    for (int done = 0; done < count; done += BLOCK) {
      int n = Math.min(BLOCK, count - done);
      System.arraycopy(keys, done, rest, 0, n);
      for (int d = sizes.length - 1; d >= 0; d--) {
        if (d > 0) {
          divide(rest, sizes[d], block, n);
        }
        long offset = 8 * (d * (long) count + done);
        MemorySegment.copy(d > 0 ? block : rest, 0, indices, JAVA_LONG_UNALIGNED, offset, n);
      }
    }
  }

  private static void divide(long[] numbers, long divisor, long[] remainders, int count) {
    for (int i = 0; i < count; i++) {
      long quotient = numbers[i] / divisor;
      remainders[i] = numbers[i] - quotient * divisor;
      numbers[i] = quotient;
    }
  }
}
