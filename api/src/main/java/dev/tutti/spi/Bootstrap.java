package dev.tutti.spi;

import dev.tutti.RendezvousException;
import dev.tutti.Store;
import dev.tutti.StoreSilentException;
import dev.tutti.StoreTimeoutException;
import java.time.Duration;
import java.util.List;
import java.util.stream.IntStream;

/**
 * Lets the ranks of a group tell each other small things through their store before they are
 * connected, and names those that do not come. Keys are a topic and a rank; each topic serves once.
 * Safe for use by several threads.
 */
public final class Bootstrap {
  private final Store store;
  private final String self;
  private final int rank;
  private final int size;

  /**
   * Creates the bootstrap of a rank.
   *
   * @param store shared by the ranks of the group, open as long as this is used
   * @param self names this rank in messages
   * @param rank this rank
   * @param size number of ranks
   */
  public Bootstrap(Store store, String self, int rank, int size) {
    if (rank < 0 || rank >= size) {
      throw new IllegalArgumentException("rank " + rank + " is not in [0, " + size + ")");
    }
    this.store = store;
    this.self = self;
    this.rank = rank;
    this.size = size;
  }

  /** Returns this rank. */
  public int rank() {
    return rank;
  }

  /** Returns the number of ranks. */
  public int size() {
    return size;
  }

  /**
   * Publishes a value of this rank.
   *
   * @param topic begins the key
   * @param value for the ranks that {@linkplain #collect collect} it
   */
  public void publish(String topic, byte[] value) {
    store.set(key(topic, rank), value);
  }

  /**
   * Waits for what ranks publish.
   *
   * @param topic as they publish it
   * @param ranks that do
   * @param what they do, in words that follow "did not"
   * @param deadlineNanos in terms of {@link System#nanoTime()}
   * @return their values, in the order of the ranks
   * @throws RendezvousException caused by a {@link PeerLateException} that names those that did not
   * @throws StoreSilentException if the store does not answer
   */
  public List<byte[]> collect(String topic, int[] ranks, String what, long deadlineNanos) {
    Duration left = Duration.ofNanos(Math.max(0, deadlineNanos - System.nanoTime()));
    try {
      return store.multiGet(IntStream.of(ranks).mapToObj(r -> key(topic, r)).toList(), left);
    } catch (StoreSilentException e) {
      throw e;
    } catch (StoreTimeoutException e) {
      List<Integer> missing =
          IntStream.of(ranks).filter(r -> !isThere(store, key(topic, r))).boxed().toList();
      if (missing.isEmpty()) {
        throw e;
      }
      PeerLateException late =
          new PeerLateException(missing, "did not " + what + " within " + left.toMillis() + " ms");
      late.addSuppressed(e);
      throw new RendezvousException(self + ": " + late.getMessage(), late);
    }
  }

  /**
   * Hands each rank the values of all.
   *
   * @param topic the same on all ranks
   * @param value of this rank; lengths may differ
   * @param what ranks do, in words that follow "did not"
   * @param deadlineNanos in terms of {@link System#nanoTime()}
   * @return the values by rank
   * @throws RendezvousException naming the ranks that did not come by then
   */
  public List<byte[]> allGather(String topic, byte[] value, String what, long deadlineNanos) {
    publish(topic, value);
    return collect(topic, IntStream.range(0, size).toArray(), what, deadlineNanos);
  }

  /**
   * Hands each rank the value of one.
   *
   * @param topic the same on all ranks
   * @param root the rank whose value counts
   * @param value of this rank; unused on all others
   * @param what the root does, in words that follow "did not"
   * @param deadlineNanos in terms of {@link System#nanoTime()}
   * @return the root's value as the store has it, also on the root
   * @throws RendezvousException if the root did not come by then
   */
  public byte[] broadcast(String topic, int root, byte[] value, String what, long deadlineNanos) {
    if (rank == root) {
      publish(topic, value);
    }
    return collect(topic, new int[] {root}, what, deadlineNanos).get(0);
  }

  /**
   * Looks for a key of a store; a server is given a second to answer.
   *
   * @throws StoreSilentException if it does not
   */
  public static boolean isThere(Store store, String key) {
    try {
      store.await(List.of(key), Duration.ZERO);
      return true;
    } catch (StoreSilentException e) {
      throw e;
    } catch (StoreTimeoutException e) {
      return false;
    }
  }

  private static String key(String topic, int rank) {
    return topic + "/" + rank;
  }
}
