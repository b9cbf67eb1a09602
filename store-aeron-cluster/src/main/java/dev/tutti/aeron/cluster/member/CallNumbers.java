package dev.tutti.aeron.cluster.member;

import dev.tutti.StoreException;
import java.util.ArrayDeque;

/** The numbers of a cluster client's calls, which encode the calls' slots; any thread may call. */
public final class CallNumbers {
  /** The number of a call that is never made; a request to cancel it is answered. */
  public static final long PROBE = 0;

  static final int SLOT_BITS = 16;

  private static final int MOST = 1 << SLOT_BITS;

  private final ArrayDeque<Integer> free = new ArrayDeque<>();
  private int slots;
  private long calls;

  /**
   * Returns a number whose slot holds no other call.
   *
   * @throws StoreException if all slots are taken
   */
  public synchronized long next() {
    Integer slot = free.poll();
    if (slot == null && slots == MOST) {
      throw new StoreException(
          "a process can have at most %d concurrent calls to a store cluster".formatted(MOST));
    }
    return ++calls << SLOT_BITS | (slot == null ? slots++ : slot);
  }

  /** Takes back a number. */
  public synchronized void free(long number) {
    free.push((int) (number & (MOST - 1)));
  }
}
