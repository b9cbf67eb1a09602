package dev.tutti.cpu.sparse;

/** Orders keys by means of one bit for each place, without sorting. */
final class PlaceBits {
  private PlaceBits() {}

  /**
   * Orders keys.
   *
   * @param keys the keys, at least one
   * @param max the largest key
   */
  static SparsePlaces order(long[] keys, long max) {
    long[] bits = new long[(int) (max >>> 6) + 1];
    for (long key : keys) {
      bits[(int) (key >>> 6)] |= 1L << key;
    }
    int[] before = new int[bits.length];
    int count = 0;
    for (int i = 0; i < bits.length; i++) {
      before[i] = count;
      count += Long.bitCount(bits[i]);
    }
    int[] places = new int[keys.length];
    // Entries are counted two places ahead, so that the sums become running positions one ahead.
    int[] starts = new int[count + 2];
    for (int i = 0; i < keys.length; i++) {
      int word = (int) (keys[i] >>> 6);
      int place = before[word] + Long.bitCount(bits[word] & ((1L << keys[i]) - 1));
      places[i] = place;
      starts[place + 2]++;
    }
    for (int i = 2; i < starts.length; i++) {
      starts[i] += starts[i - 1];
    }
    int[] order = new int[keys.length];
    for (int i = 0; i < keys.length; i++) {
      order[starts[places[i] + 1]++] = i;
    }
    return new SparsePlaces(count, list(bits, count), order, starts);
  }

  private static long[] list(long[] bits, int count) {
    long[] keys = new long[count];
    int n = 0;
    for (int i = 0; i < bits.length; i++) {
      for (long rest = bits[i]; rest != 0; rest &= rest - 1) {
        keys[n++] = 64L * i + Long.numberOfTrailingZeros(rest);
      }
    }
    return keys;
  }
}
