package dev.tutti.cuda.share;

import dev.tutti.RendezvousException;
import dev.tutti.Store;
import dev.tutti.StoreException;
import dev.tutti.spi.Bootstrap;
import dev.tutti.spi.Time;
import java.time.Duration;
import java.util.List;

/**
 * An exchange of small values between the ranks of a group through a store (c10d: {@code
 * StoreExchange}). Each exchange has a number within the group, and leaves no keys behind once all
 * ranks have read it. All ranks must make the same calls in the same order, one thread per rank at
 * a time.
 */
public final class StoreExchange {
  /*
   * Keys: PREFIX/NUMBER/RANK holds a rank's value, and PREFIX/NUMBER/read counts the ranks that
   * have read all values. The last of these ranks deletes the keys. PREFIX/left/NAME counts the
   * ranks that are done with something, and PREFIX/left/NAME/all exists once all are. c10d numbers
   * exchanges per process rather than per group, so ranks in different groups wait for different
   * keys; and it deletes none.
   */
  private final Store store;
  private final String prefix;
  private final Bootstrap bootstrap;
  private long number;
  private volatile boolean missed;

  /**
   * Creates the exchange of one rank.
   *
   * @param store a store shared by the ranks of the group, open as long as this object is used
   * @param prefix the prefix of all keys; the same on all ranks and used by nothing else
   * @param rank this rank's number
   * @param size the number of ranks
   */
  public StoreExchange(Store store, String prefix, int rank, int size) {
    this.store = store;
    this.prefix = prefix;
    this.bootstrap = new Bootstrap(store, "rank " + rank + "/" + size, rank, size, Time.SYSTEM);
  }

  /** Returns this rank's number. */
  public int rank() {
    return bootstrap.rank();
  }

  /** Returns the number of ranks. */
  public int size() {
    return bootstrap.size();
  }

  /**
   * Gives each rank the values of all ranks.
   *
   * @param value this rank's value; lengths may differ between ranks
   * @param deadlineNanos the deadline, in terms of {@link System#nanoTime()}
   * @return the values, in rank order
   * @throws RendezvousException if ranks do not arrive by the deadline; the message names them
   */
  public List<byte[]> allGather(byte[] value, long deadlineNanos) {
    String exchange = prefix + "/" + number;
    number++;
    if (size() == 1) {
      return List.of(value.clone());
    }
    List<byte[]> values =
        bootstrap.allGather(exchange, value, "reach exchange " + exchange, deadlineNanos);
    if (store.add(exchange + "/read", 1) == size()) {
      for (int r = 0; r < size(); r++) {
        store.deleteKey(exchange + "/" + r);
      }
      store.deleteKey(exchange + "/read");
    }
    return values;
  }

  /** Returns the number of the next exchange, the same on all ranks that make the same calls. */
  long number() {
    return number;
  }

  /**
   * Returns whether a rank has reached the next exchange, and so will do nothing more that precedes
   * it.
   *
   * @param peer the rank
   */
  boolean isAhead(int peer) {
    return store.check(List.of(prefix + "/" + number + "/" + peer));
  }

  /**
   * Declares that this rank is done with something.
   *
   * @param name the name of the thing, the same on all ranks
   * @param users the number of ranks that declare this
   * @return whether the others were notified; false if the store fails
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
   * Waits until all users of something are done with it; does not wait if an earlier such wait has
   * failed.
   *
   * @param name the name of the thing, as its users call it
   * @param longest the maximum time to wait
   * @return whether all users are done
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
   * @param deadlineNanos the deadline, in terms of {@link System#nanoTime()}
   * @throws RendezvousException if ranks do not arrive by the deadline; the message names them
   */
  public void barrier(long deadlineNanos) {
    List<byte[]> _ = allGather(new byte[0], deadlineNanos);
  }
}
