package dev.tutti.store.tcp;

import dev.tutti.Store;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Does what a Tutti server and PyTorch's servers need to be asked in different ways. Keys are as on
 * the wire.
 */
interface Dialect {
  /** Refuses a key that the server would drop this client for. */
  void requireKey(String key);

  Store.Swap compareSet(String key, byte @Nullable [] expected, byte[] desired);

  /** Waits until all keys have values; returns null if some have not at the deadline. */
  @Nullable List<byte[]> fetch(List<String> keys, long nanos);

  /** Waits until all keys exist; returns whether they do before the deadline. */
  boolean look(List<String> keys, long nanos);

  /** Waits for a value of a queue; returns null if there is none at the deadline. */
  byte @Nullable [] take(String key, long nanos);

  /** Waits at a barrier; returns 0 if all came, else how many were there at the deadline. */
  int barrier(String key, int size, long nanos);

  /** Refuses queues where the server has none; asks it at most once, and at most so long. */
  void requireQueues(long nanos);

  /** Refuses to list keys where the server cannot. */
  void requireListing();
}
