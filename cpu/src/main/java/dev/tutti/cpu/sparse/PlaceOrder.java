package dev.tutti.cpu.sparse;

/** The choice of how to order the entries of sparse tensors by their places. */
public final class PlaceOrder {
  /*
   * If there are few places for each entry, one bit for each place gives the order without sorting.
   * Otherwise tensors that ascend are merged pairwise, which moves an entry as often as the number
   * of tensors can be halved; a radix sort moves it once for each digit, regardless of the order,
   * but takes twice as long for a move when several tensors ascend (docs/performance-log.md).
   */
  private static final int SPREAD_ASCENDING = 32;
  private static final int SPREAD = 4;

  /**
   * The number of places above which bits that are accessed in random order do not stay in the
   * cache.
   */
  private static final int MOST = 1 << 21;

  private PlaceOrder() {}

  /**
   * Orders the entries of tensors.
   *
   * @param keys the keys, at least one; may be changed
   */
  public static SparsePlaces of(SparseKeys keys) {
    boolean ascending = keys.isAscendingInEach();
    long perEntry = keys.max() / keys.count();
    if (ascending ? perEntry < SPREAD_ASCENDING : perEntry < SPREAD && keys.max() < MOST) {
      return PlaceBits.order(keys.keys(), keys.max());
    }
    RadixSort sort = new RadixSort(keys.count(), keys.max());
    int levels = Integer.SIZE - Integer.numberOfLeadingZeros(keys.tensors() - 1);
    if (ascending && levels <= 2 * sort.passes()) {
      return KeyMerge.order(keys);
    }
    return sort.order(keys.keys());
  }
}
