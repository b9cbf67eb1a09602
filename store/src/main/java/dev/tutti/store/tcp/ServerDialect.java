package dev.tutti.store.tcp;

import dev.tutti.Store;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * The operations that a client requests from a Tutti server and from a PyTorch server in different
 * ways. Keys are in their wire form.
 */
interface ServerDialect {
  /** Refuses a key for which the server would drop this client. */
  void requireKey(String key);

  Store.Swap compareSet(String key, byte @Nullable [] expected, byte[] desired);

  /** Waits until all keys have values; returns null if some have none at the deadline. */
  @Nullable List<byte[]> fetch(List<String> keys, long nanos);

  /** Waits until all keys exist; returns whether they do before the deadline. */
  boolean look(List<String> keys, long nanos);

  /** Waits for a value of a queue; returns null if there is none at the deadline. */
  byte @Nullable [] take(String key, long nanos);

  /**
   * Waits at a barrier; returns 0 if all members came, or else how many were there at the deadline.
   */
  int barrier(String key, int size, long nanos);

  /**
   * Refuses queues if the server has none; queries the server at most once, and takes at most the
   * given time.
   */
  void requireQueues(long nanos);

  /** Refuses to list keys if the server cannot do so. */
  void requireListing();
}
