package dev.tutti.aeron.cluster;

import dev.tutti.StoreException;
import java.util.ArrayDeque;

/** The numbers of a cluster client's calls, which encode the calls' slots; any thread may call. */
final class CallNumbers {
  private static final int MOST = 1 << ClusterCaller.SLOT_BITS;

  private final ArrayDeque<Integer> free = new ArrayDeque<>();
  private int slots;
  private long calls;

  /**
   * Returns a number whose slot holds no other call.
   *
   * @throws StoreException if all slots are taken
   */
  synchronized long next() {
    Integer slot = free.poll();
    if (slot == null && slots == MOST) {
      throw new StoreException(
          "a process can have at most %d concurrent calls to a store cluster".formatted(MOST));
    }
    return ++calls << ClusterCaller.SLOT_BITS | (slot == null ? slots++ : slot);
  }

  /** Takes back a number. */
  synchronized void free(long number) {
    free.push((int) (number & (MOST - 1)));
  }
}
