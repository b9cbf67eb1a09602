package dev.tutti;

import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Shares small values between the ranks of a job, by key (c10d: {@code Store}).
 *
 * {@snippet file="GroupSnippetsTest.java" region="store"}
 *
 * <p>Any thread may call any method at any time; a blocked call never stalls a call of another
 * thread. Every blocking call ends at its deadline: the one it is given, else {@link #timeout()}. A
 * zero or negative timeout means "at once": the call answers from what is there. After {@link
 * #close()} each call throws {@link StoreClosedException}, also those then waiting.
 *
 * <p>An interrupt ends a call that waits with a {@link StoreException} whose cause is an {@link
 * InterruptedException}, and leaves the thread interrupted; a call that waits for nobody does its
 * work.
 *
 * <p>Keys are non-empty text of at most 8 KiB in UTF-8; values are at most 8 MiB. Arrays given and
 * returned are never shared with the store. Queues live in a name space of their own, except that
 * {@link #check} and {@link #await} see a non-empty queue as an existing key.
 */
public interface Store extends AutoCloseable {
  /** The deadline of a store that was given none: five minutes, as in c10d. */
  Duration DEFAULT_TIMEOUT = Duration.ofMinutes(5);

  /** The longest key, in bytes of UTF-8. */
  int MAX_KEY_BYTES = 8 * 1024;

  /** The longest value, in bytes. */
  int MAX_VALUE_BYTES = 8 * 1024 * 1024;

  /** The largest number of keys in one call. */
  int MAX_KEYS = 128 * 1024;

  /** Returns the deadline of calls that are given none. */
  Duration timeout();

  /**
   * Sets a key and wakes those who wait for it.
   *
   * @param key the key
   * @param value the bytes, copied
   * @throws StoreException if the store fails
   */
  void set(String key, byte[] value);

  /**
   * Sets a key to UTF-8 text.
   *
   * @param key the key
   * @param value the text
   */
  default void set(String key, String value) {
    set(key, value.getBytes(StandardCharsets.UTF_8));
  }

  /**
   * Waits until a key exists and returns its value.
   *
   * @param key the key
   * @return the bytes, the caller's own
   * @throws StoreTimeoutException if the key does not exist by the store's deadline
   */
  default byte[] get(String key) {
    return get(key, timeout());
  }

  /**
   * Waits until a key exists and returns its value.
   *
   * @param key the key
   * @param timeout the deadline from now
   * @return the bytes, the caller's own
   * @throws StoreTimeoutException if the key does not exist by then
   */
  byte[] get(String key, Duration timeout);

  /**
   * Waits until a key exists and returns its value as UTF-8 text; bytes that are none become
   * replacement characters.
   *
   * @param key the key
   * @throws StoreTimeoutException if the key does not exist by the store's deadline
   */
  default String getString(String key) {
    return new String(get(key), StandardCharsets.UTF_8);
  }

  /**
   * Adds to a counter, atomically; an absent one counts as 0.
   *
   * <p>The value is kept as decimal text, so that {@link #get} reads it (c10d).
   *
   * @param key the key
   * @param delta what to add; 0 reads
   * @return the new value
   * @throws StoreException if the key holds something else than a decimal number
   */
  long add(String key, long delta);

  /**
   * Replaces a value if it is the expected one, atomically, and tells what happened.
   *
   * <p>c10d cannot tell "absent" from "different"; {@link Swap} can.
   *
   * @param key the key
   * @param expected the bytes expected there; null expects the key to be absent
   * @param desired the bytes to store then
   * @return whether it stored, and what is there now
   */
  Swap compareSet(String key, byte @Nullable [] expected, byte[] desired);

  /**
   * Waits until all keys exist.
   *
   * @param keys the keys
   * @throws StoreTimeoutException naming the missing keys, if some are missing at the deadline
   */
  default void await(List<String> keys) {
    await(keys, timeout());
  }

  /**
   * Waits until all keys exist.
   *
   * @param keys the keys
   * @param timeout the deadline from now
   * @throws StoreTimeoutException naming the missing keys, if some are missing by then
   */
  void await(List<String> keys, Duration timeout);

  /**
   * Tells at once whether all keys exist.
   *
   * @param keys the keys
   */
  boolean check(List<String> keys);

  /**
   * Tells at once whether all keys exist.
   *
   * @param keys the keys
   */
  default boolean check(String... keys) {
    return check(List.of(keys));
  }

  /**
   * Deletes a key.
   *
   * @param key the key
   * @return whether it was there
   */
  boolean deleteKey(String key);

  /** Returns the number of keys in the whole store, also those below other prefixes. */
  long keyCount();

  /**
   * Appends to a value, atomically; an absent one counts as empty.
   *
   * @param key the key
   * @param value the bytes to append
   */
  void append(String key, byte[] value);

  /**
   * Waits until all keys exist and returns their values.
   *
   * @param keys the keys
   * @param timeout the deadline from now
   * @return the values in the order of the keys
   * @throws StoreTimeoutException naming the missing keys, if some are missing by then
   */
  List<byte[]> multiGet(List<String> keys, Duration timeout);

  /**
   * Waits until all keys exist and returns their values.
   *
   * @param keys the keys
   * @return the values in the order of the keys
   */
  default List<byte[]> multiGet(List<String> keys) {
    return multiGet(keys, timeout());
  }

  /**
   * Sets several keys.
   *
   * @param keys the keys
   * @param values their values, as many
   * @throws IllegalArgumentException if the numbers differ
   */
  void multiSet(List<String> keys, List<byte[]> values);

  /**
   * Appends a value to a queue and wakes one waiting pop.
   *
   * @param key the queue
   * @param value the bytes
   */
  void queuePush(String key, byte[] value);

  /**
   * Takes the first value of a queue; waits for one. Each value comes at most once: where the store
   * has taken one and its answer is lost on the way, or comes after the caller gave up, nobody gets
   * it.
   *
   * @param key the queue
   * @param timeout the deadline from now; zero does not wait
   * @throws StoreQueueEmptyException if the queue is empty and {@code timeout} is zero or negative
   * @throws StoreTimeoutException if it is still empty at the deadline
   */
  byte[] queuePop(String key, Duration timeout);

  /**
   * Returns the number of values in a queue.
   *
   * @param key the queue
   */
  long queueLength(String key);

  /** Returns the keys of the store below its prefix, sorted, without the prefix. */
  List<String> listKeys();

  /**
   * Waits until as many callers came to the same barrier as it has members.
   *
   * <p>A key serves for any number of rounds, as long as all members take part in each.
   *
   * @param key names the barrier
   * @param size number of members
   * @param timeout the deadline from now
   * @throws StoreTimeoutException telling how many came, if members are missing by then
   */
  void barrier(String key, int size, Duration timeout);

  /**
   * Leaves a will: if this process ends, or its host is lost, before it closed this handle, the
   * store numbers keys from 1 on behind {@code log} and sets the first one that is absent.
   *
   * @param log what those keys start with, in front of their number
   * @param value the bytes, copied
   * @return whether this store can find that out; if not it does nothing
   * @throws StoreException if the store fails
   */
  default boolean leaveWill(String log, byte[] value) {
    return false;
  }

  /**
   * Opens an independent handle to the same data, with a connection of its own where there is one.
   *
   * @return a store that the caller closes
   */
  Store duplicate();

  /** Closes this handle; the second and later calls do nothing. */
  @Override
  void close();

  /**
   * Tells the result of a {@link #compareSet}.
   *
   * @param stored whether the desired value was stored
   * @param value what is there now; null where the key is absent
   */
  @SuppressWarnings("ArrayRecordComponent") // bytes are what a store holds; callers own the copy
  record Swap(boolean stored, byte @Nullable [] value) {}
}
