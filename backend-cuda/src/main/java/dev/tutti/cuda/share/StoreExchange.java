package dev.tutti.cuda.share;

import dev.tutti.RendezvousException;
import dev.tutti.Store;
import dev.tutti.StoreException;
import dev.tutti.spi.Bootstrap;
import java.time.Duration;
import java.util.List;

/**
 * Lets the ranks of a group tell each other small things through a store (c10d: {@code
 * StoreExchange}). Each exchange has its number in the group, and leaves no keys behind once all
 * ranks have read it. All ranks make the same calls in the same order; one thread of a rank at a
 * time.
 */
public final class StoreExchange {
  /*
   * Keys: PREFIX/NUMBER/RANK, the ranks' values, and PREFIX/NUMBER/read, how many ranks have read all
   * of them. The last rank there deletes them. PREFIX/left/NAME counts the ranks that are done with
   * something, and PREFIX/left/NAME/all is there once all are. c10d numbers the exchanges of a process and not those of
   * a group, so that ranks in different groups wait for different keys; and it deletes none.
   */
  private final Store store;
  private final String prefix;
  private final Bootstrap bootstrap;
  private long number;
  private volatile boolean missed;

  /**
   * Creates the exchange of one rank.
   *
   * @param store shared by the ranks of the group, open as long as this is used
   * @param prefix of all keys; the same on all ranks, and used by nothing else
   * @param rank this rank
   * @param size number of ranks
   */
  public StoreExchange(Store store, String prefix, int rank, int size) {
    this.store = store;
    this.prefix = prefix;
    this.bootstrap = new Bootstrap(store, "rank " + rank + "/" + size, rank, size);
  }

  /** Returns this rank. */
  public int rank() {
    return bootstrap.rank();
  }

  /** Returns the number of ranks. */
  public int size() {
    return bootstrap.size();
  }

  /**
   * Hands each rank the values of all.
   *
   * @param value this rank's; lengths may differ
   * @param deadlineNanos in terms of {@link System#nanoTime()}
   * @return the values by rank
   * @throws RendezvousException naming the ranks that did not come by then
   */
  public List<byte[]> allGather(byte[] value, long deadlineNanos) {
    String exchange = prefix + "/" + number;
    number++;
    if (size() == 1) {
      return List.of(value.clone());
    }
    List<byte[]> values =
        bootstrap.allGather(exchange, value, "come to exchange " + exchange, deadlineNanos);
    if (store.add(exchange + "/read", 1) == size()) {
      for (int r = 0; r < size(); r++) {
        store.deleteKey(exchange + "/" + r);
      }
      store.deleteKey(exchange + "/read");
    }
    return values;
  }

  /** Returns the number of the next exchange, the same on all ranks that do the same. */
  long number() {
    return number;
  }

  /**
   * Tells whether a rank has come to the next exchange, and so does nothing any more that belongs
   * before it.
   *
   * @param peer the rank
   */
  boolean isAhead(int peer) {
    return store.check(List.of(prefix + "/" + number + "/" + peer));
  }

  /**
   * Says that this rank is done with something.
   *
   * @param name of it, the same on all ranks
   * @param users how many ranks say so
   * @return whether the others were told; false if the store cannot
   */
  boolean leave(String name, int users) {
    String key = prefix + "/left/" + name;
    try {
      if (store.add(key, 1) == users) {
        store.set(key + "/all", new byte[] {1});
      }
      return true;
    } catch (StoreException e) {
      return false;
    }
  }

  /**
   * Waits until all users of something are done with it; no longer than for the first one that did
   * not come, if there was one.
   *
   * @param name as they have it
   * @param longest how long
   * @return whether they are
   */
  boolean awaitLeft(String name, Duration longest) {
    String key = prefix + "/left/" + name;
    try {
      store.await(List.of(key + "/all"), missed ? Duration.ZERO : longest);
      store.deleteKey(key + "/all");
      store.deleteKey(key);
      return true;
    } catch (StoreException e) {
      missed = true;
      return false;
    }
  }

  /**
   * Waits for all ranks.
   *
   * @param deadlineNanos in terms of {@link System#nanoTime()}
   * @throws RendezvousException naming the ranks that did not come by then
   */
  public void barrier(long deadlineNanos) {
    List<byte[]> _ = allGather(new byte[0], deadlineNanos);
  }
}
