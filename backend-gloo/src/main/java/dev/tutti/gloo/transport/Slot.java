package dev.tutti.gloo.transport;

/**
 * The slots of collectives: the kind in the top byte, then 32 bits of tag, then 24 bits that stay
 * zero (Gloo: {@code types.h}). The slot of a send or receive is the user's tag itself.
 */
public enum Slot {
  /** Gather. */
  GATHER(1),
  /** All-gather, and the rounds of the sparse all-reduce. */
  ALL_GATHER(2),
  /** Reduce. */
  REDUCE(3),
  /** All-reduce, and reduce-scatter through it. */
  ALL_REDUCE(4),
  /** Scatter. */
  SCATTER(5),
  /** Broadcast. */
  BROADCAST(6),
  /** Barrier. */
  BARRIER(7),
  /** All-to-all. */
  ALL_TO_ALL(8),
  /** What Tutti ranks send each other besides the tensors; unknown to Gloo. */
  CONTROL(0x54);

  private final int prefix;

  Slot(int prefix) {
    this.prefix = prefix;
  }

  /**
   * Returns the slot of one collective.
   *
   * @param tag the number of the collective, as an unsigned 32-bit counter
   */
  public long of(int tag) {
    return ((long) prefix << 56) | (Integer.toUnsignedLong(tag) << 24);
  }

  /**
   * Returns whether a slot belongs to a collective that ends on no rank before all ranks have
   * reached it, whatever a rank sends early.
   *
   * @param slot a slot from {@link #of}, or of a user message
   */
  static boolean isMutual(long slot) {
    return switch ((int) (slot >>> 56)) {
      case 2, 4, 7, 8 -> true;
      default -> false;
    };
  }

  /**
   * Returns the number of the collective that a slot belongs to.
   *
   * @param slot a slot from {@link #of}
   */
  static int tag(long slot) {
    return (int) (slot >>> 24);
  }
}
