package dev.tutti.lightgbm;

/**
 * The order in which LightGBM's own network reduces the parts of a block, so that sums of floating
 * point numbers, and ties of best splits, come out the same.
 *
 * <p>Its network halves recursively: rank r first takes the part of the rank whose highest bit
 * differs, which has done nothing yet, then of the one whose next bit differs, which has done the
 * same as r, and so on. Where the ranks are no power of two, the last ones join into pairs before.
 * From 10 MiB on, such ranks use a ring instead. Cost here: each of n parts is read once, n - 1
 * reductions of the block; on the wire an all-to-all moved them, as many bytes as halving moves.
 */
final class ReductionOrder {
  /** From here on ranks whose number is no power of two use a ring, in bytes. */
  static final int RING_BYTES = 10 * 1024 * 1024;

  private ReductionOrder() {}

  /**
   * Reduces all parts of a rank's block.
   *
   * @param rank owner of the block
   * @param size number of ranks, at least 1
   * @param inputBytes size of all blocks together
   * @param reducer reduces two parts
   * @return the rank whose part has become the result
   */
  static int reduce(int rank, int size, long inputBytes, Reducer reducer) {
    int groups = Integer.highestOneBit(size);
    if (groups != size && inputBytes >= RING_BYTES) {
      return ring(rank, size, reducer);
    }
    // The first ranks are groups of their own; each of the others is one of a pair, led by its
    // left.
    int singles = size - 2 * (size - groups);
    for (int left = singles; left < size; left += 2) {
      reducer.reduce(left + 1, left);
    }
    int group = rank < singles ? rank : singles + (rank - singles) / 2;
    for (int distance = groups / 2; distance > 0; distance /= 2) {
      // Those that agree with the owner in this bit and all above it go on; below, all do.
      int first = group / distance * distance;
      for (int each = first; each < first + distance; each++) {
        reducer.reduce(leader(each ^ distance, singles), leader(each, singles));
      }
    }
    return leader(group, singles);
  }

  private static int leader(int group, int singles) {
    return group < singles ? group : singles + (group - singles) * 2;
  }

  private static int ring(int rank, int size, Reducer reducer) {
    int last = (rank + 1) % size;
    for (int i = 2; i <= size; i++) {
      int next = (rank + i) % size;
      reducer.reduce(last, next);
      last = next;
    }
    return rank;
  }
}
