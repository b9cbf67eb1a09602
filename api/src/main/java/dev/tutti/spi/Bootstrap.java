package dev.tutti.spi;

import dev.tutti.RendezvousException;
import dev.tutti.Store;
import dev.tutti.StoreSilentException;
import dev.tutti.StoreTimeoutException;
import java.time.Duration;
import java.util.List;
import java.util.function.BiFunction;
import java.util.stream.IntStream;

/**
 * A means for the ranks of a group to exchange small values through their store before they are
 * connected, which names the ranks that do not come. A key consists of a topic and a rank; each
 * topic can be used only once. Safe for use by multiple threads.
 */
public final class Bootstrap {
  private final Store store;
  private final String self;
  private final int rank;
  private final int size;
  private final Time time;

  /**
   * Creates the bootstrap of a rank.
   *
   * @param store a store that the ranks of the group share, open as long as this object is used
   * @param self the name of this rank in messages
   * @param rank this rank
   * @param size the number of ranks
   * @param time whose clock the deadlines refer to
   */
  public Bootstrap(Store store, String self, int rank, int size, Time time) {
    if (rank < 0 || rank >= size) {
      throw new IllegalArgumentException("rank " + rank + " is not in [0, " + size + ")");
    }
    this.store = store;
    this.self = self;
    this.rank = rank;
    this.size = size;
    this.time = time;
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
   * Publishes a value for this rank.
   *
   * @param topic the start of the key
   * @param value the value for the ranks that {@linkplain #collect collect} it
   */
  public void publish(String topic, byte[] value) {
    store.set(key(topic, rank), value);
  }

  /**
   * Waits for the values that some ranks publish, and returns them.
   *
   * @param topic the topic under which the ranks publish
   * @param ranks the ranks that publish
   * @param what what these ranks do, in words that follow "did not"
   * @param deadlineNanos the deadline, in terms of the clock of this object's time
   * @return the values, in the order of the ranks
   * @throws RendezvousException caused by a {@link PeerLateException} that names the ranks that did
   *     not publish
   * @throws StoreSilentException if the store does not answer
   */
  public List<byte[]> collect(String topic, int[] ranks, String what, long deadlineNanos) {
    return get(topic, ranks, what, deadlineNanos, store::multiGet);
  }

  /**
   * Waits until all ranks have published a value, but reads none.
   *
   * @param topic the topic under which the ranks publish
   * @param what what the ranks do, in words that follow "did not"
   * @param deadlineNanos the deadline, in terms of the clock of this object's time
   * @throws RendezvousException naming the ranks that did not come by the deadline
   * @throws StoreSilentException if the store does not answer
   */
  public void await(String topic, String what, long deadlineNanos) {
    boolean _ =
        get(
            topic,
            all(),
            what,
            deadlineNanos,
            (keys, left) -> {
              store.await(keys, left);
              return true;
            });
  }

  /**
   * Returns whether all ranks have published a value.
   *
   * @param topic the topic under which the ranks publish
   */
  public boolean isPublished(String topic) {
    return store.check(keys(topic, all()));
  }

  private int[] all() {
    return IntStream.range(0, size).toArray();
  }

  private static List<String> keys(String topic, int[] ranks) {
    return IntStream.of(ranks).mapToObj(r -> key(topic, r)).toList();
  }

  private <T> T get(
      String topic,
      int[] ranks,
      String what,
      long deadlineNanos,
      BiFunction<List<String>, Duration, T> call) {
    Duration left = time.left(deadlineNanos);
    try {
      return call.apply(keys(topic, ranks), left);
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
   * Gives each rank the values of all ranks.
   *
   * @param topic the topic, the same on all ranks
   * @param value the value of this rank; lengths may differ
   * @param what what the ranks do, in words that follow "did not"
   * @param deadlineNanos the deadline, in terms of the clock of this object's time
   * @return the values by rank
   * @throws RendezvousException naming the ranks that did not come by the deadline
   */
  public List<byte[]> allGather(String topic, byte[] value, String what, long deadlineNanos) {
    publish(topic, value);
    return collect(topic, all(), what, deadlineNanos);
  }

  /**
   * Gives each rank the value of one rank.
   *
   * @param topic the topic, the same on all ranks
   * @param root the rank whose value is returned
   * @param value the value of this rank; only used on the root
   * @param what the root does, in words that follow "did not"
   * @param deadlineNanos the deadline, in terms of the clock of this object's time
   * @return the root's value as the store has it, also on the root
   * @throws RendezvousException if the root did not come by the deadline
   */
  public byte[] broadcast(String topic, int root, byte[] value, String what, long deadlineNanos) {
    if (rank == root) {
      publish(topic, value);
    }
    return collect(topic, new int[] {root}, what, deadlineNanos).get(0);
  }

  /**
   * Returns whether a store has a key; a server is given one second to answer.
   *
   * @throws StoreSilentException if the server does not answer
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
