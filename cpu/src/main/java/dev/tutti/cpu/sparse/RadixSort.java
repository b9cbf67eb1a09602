package dev.tutti.cpu.sparse;

import java.util.Arrays;

/** Sorts keys by digits, from the last to the first; equal keys stay in order. */
final class RadixSort {
  private static final int LONG_DIGIT = 11;
  private static final int SHORT_DIGIT = 8;

  /**
   * The number of keys below which counting longer digits takes longer than moving keys more often.
   */
  private static final int FEW = 4096;

  private final int passes;
  private final int digit;

  /**
   * Chooses the digits.
   *
   * @param count the number of keys
   * @param max the largest key
   */
  RadixSort(int count, long max) {
    int bits = Math.max(1, Long.SIZE - Long.numberOfLeadingZeros(max));
    passes = Math.ceilDiv(bits, count < FEW ? SHORT_DIGIT : LONG_DIGIT);
    digit = Math.ceilDiv(bits, passes);
  }

  /** Returns how often each key is moved. */
  int passes() {
    return passes;
  }

  /** Orders keys; overwrites them. */
  SparsePlaces order(long[] keys) {
    long[] from = keys;
    long[] to = new long[keys.length];
    int[] entries = new int[keys.length];
    int[] moved = new int[keys.length];
    for (int i = 0; i < entries.length; i++) {
      entries[i] = i;
    }
    int[] starts = new int[1 << digit];
    for (int pass = 0; pass < passes; pass++) {
      int shift = pass * digit;
      if (countDigits(from, shift, starts)) {
        move(from, entries, to, moved, shift, starts);
        long[] keysBefore = from;
        from = to;
        to = keysBefore;
        int[] entriesBefore = entries;
        entries = moved;
        moved = entriesBefore;
      }
    }
    return SparsePlaces.ofSorted(from, entries);
  }

  /** Determines where the keys of each digit go; returns whether there are several digits. */
  private static boolean countDigits(long[] keys, int shift, int[] starts) {
    Arrays.fill(starts, 0);
    int mask = starts.length - 1;
    for (long key : keys) {
      starts[(int) (key >>> shift) & mask]++;
    }
    if (starts[(int) (keys[0] >>> shift) & mask] == keys.length) {
      return false;
    }
    int sum = 0;
    for (int i = 0; i < starts.length; i++) {
      int count = starts[i];
      starts[i] = sum;
      sum += count;
    }
    return true;
  }

  private static void move(
      long[] keys, int[] entries, long[] toKeys, int[] toEntries, int shift, int[] starts) {
    int mask = starts.length - 1;
    for (int i = 0; i < keys.length; i++) {
      long key = keys[i];
      int at = starts[(int) (key >>> shift) & mask]++;
      toKeys[at] = key;
      toEntries[at] = entries[i];
    }
  }
}
