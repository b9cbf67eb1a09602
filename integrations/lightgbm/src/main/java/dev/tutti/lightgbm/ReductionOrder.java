package dev.tutti.lightgbm;

/**
 * The order in which LightGBM's own network reduces the parts of a block. Using the same order
 * gives the same floating-point sums, and breaks ties between best splits in the same way.
 *
 * <p>LightGBM's network uses recursive halving: rank r first takes the part of the rank that
 * differs in the highest bit, which has reduced nothing yet, then that of the rank that differs in
 * the next bit, which has done the same as r, and so on. If the number of ranks is not a power of
 * two, the last ones first form pairs. From 10 MiB on, such a number of ranks uses a ring instead.
 * Cost here: each of the n parts is read once, in n - 1 reductions of the block; the all-to-all
 * that moved the parts sent as many bytes as halving does.
 */
final class ReductionOrder {
  /** The size in bytes from which a number of ranks that is not a power of two uses a ring. */
  static final int RING_BYTES = 10 * 1024 * 1024;

  private ReductionOrder() {}

  /**
   * Reduces all parts of a rank's block.
   *
   * @param rank the owner of the block
   * @param size the number of ranks, at least 1
   * @param inputBytes the total size of all blocks
   * @param reducer the function that reduces two parts
   * @return the rank whose part has become the result
   */
  static int reduce(int rank, int size, long inputBytes, Reducer reducer) {
    int groups = Integer.highestOneBit(size);
    if (groups != size && inputBytes >= RING_BYTES) {
      return ring(rank, size, reducer);
    }
    // The first ranks are groups of their own; each of the others is in a pair, led by its left
    // member.
    int singles = size - 2 * (size - groups);
    for (int left = singles; left < size; left += 2) {
      reducer.reduce(left + 1, left);
    }
    int group = rank < singles ? rank : singles + (rank - singles) / 2;
    for (int distance = groups / 2; distance > 0; distance /= 2) {
      // Groups that agree with the owner in this bit and above continue; bits below do not matter.
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
