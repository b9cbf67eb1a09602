package dev.tutti;

import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * A key-value store that shares small values between the ranks of a job (c10d: {@code Store}).
 *
 * {@snippet file="GroupSnippetsTest.java" region="store"}
 *
 * <p>Any thread may call any method at any time; a blocked call never delays a call of another
 * thread. Every blocking call ends at its deadline, which is the one it is given or else {@link
 * #timeout()}. A zero or negative timeout means "at once": the call answers from what is in the
 * store already. After {@link #close()}, every call throws {@link StoreClosedException}, including
 * calls that are waiting at that time.
 *
 * <p>An interrupt ends a waiting call with a {@link StoreException} whose cause is an {@link
 * InterruptedException}, and leaves the thread interrupted; a call that need not wait completes its
 * work.
 *
 * <p>Keys are non-empty strings of at most 8 KiB in UTF-8; values are at most 8 MiB. Arrays passed
 * in and returned are never shared with the store. Queues have a namespace of their own, except
 * that {@link #check} and {@link #await} treat a non-empty queue as an existing key.
 */
public interface Store extends AutoCloseable {
  /** The deadline of a store for which none was given: five minutes, as in c10d. */
  Duration DEFAULT_TIMEOUT = Duration.ofMinutes(5);

  /** The maximum length of a key, in bytes of UTF-8. */
  int MAX_KEY_BYTES = 8 * 1024;

  /** The maximum length of a value, in bytes. */
  int MAX_VALUE_BYTES = 8 * 1024 * 1024;

  /** The maximum number of keys in one call. */
  int MAX_KEYS = 128 * 1024;

  /** Returns the deadline of calls that have none of their own. */
  Duration timeout();

  /**
   * Sets a key and wakes the callers that wait for it.
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
   * @return the bytes, owned by the caller
   * @throws StoreTimeoutException if the key does not exist by the store's deadline
   */
  default byte[] get(String key) {
    return get(key, timeout());
  }

  /**
   * Waits until a key exists and returns its value.
   *
   * @param key the key
   * @param timeout the time allowed from now
   * @return the bytes, owned by the caller
   * @throws StoreTimeoutException if the key does not exist by the deadline
   */
  byte[] get(String key, Duration timeout);

  /**
   * Waits until a key exists and returns its value as UTF-8 text; invalid bytes become replacement
   * characters.
   *
   * @param key the key
   * @throws StoreTimeoutException if the key does not exist by the store's deadline
   */
  default String getString(String key) {
    return new String(get(key), StandardCharsets.UTF_8);
  }

  /**
   * Adds to a counter atomically; an absent counter counts as 0.
   *
   * <p>The value is kept as decimal text, so {@link #get} can read it, as in c10d.
   *
   * @param key the key
   * @param delta the number to add; 0 only reads the counter
   * @return the new value
   * @throws StoreException if the key holds something other than a decimal number
   */
  long add(String key, long delta);

  /**
   * Atomically replaces a value if it equals the expected one, and returns what happened.
   *
   * <p>c10d does not distinguish an absent key from one with a different value; {@link Swap} can.
   *
   * @param key the key
   * @param expected the expected bytes, or null if the key is expected to be absent
   * @param desired the bytes to store if the expectation holds
   * @return whether the bytes were stored, and what the key holds now
   */
  Swap compareSet(String key, byte @Nullable [] expected, byte[] desired);

  /**
   * Waits until all keys exist.
   *
   * @param keys the keys
   * @throws StoreTimeoutException naming the missing keys, if some are missing at the store's
   *     deadline
   */
  default void await(List<String> keys) {
    await(keys, timeout());
  }

  /**
   * Waits until all keys exist.
   *
   * @param keys the keys
   * @param timeout the time allowed from now
   * @throws StoreTimeoutException naming the missing keys, if some are missing at the deadline
   */
  void await(List<String> keys, Duration timeout);

  /**
   * Returns, without waiting, whether all keys exist.
   *
   * @param keys the keys
   */
  boolean check(List<String> keys);

  /**
   * Returns, without waiting, whether all keys exist.
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
   * @return whether the key existed
   */
  boolean deleteKey(String key);

  /** Returns the number of keys in the whole store, including those under other prefixes. */
  long keyCount();

  /**
   * Appends to a value atomically; an absent value counts as empty.
   *
   * @param key the key
   * @param value the bytes to append
   */
  void append(String key, byte[] value);

  /**
   * Waits until all keys exist and returns their values.
   *
   * @param keys the keys
   * @param timeout the time allowed from now
   * @return the values in the order of the keys
   * @throws StoreTimeoutException naming the missing keys, if some are missing at the deadline
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
   * @param values the values, one for each key
   * @throws IllegalArgumentException if there are not as many values as keys
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
   * Removes and returns the first value of a queue, waiting for one if the queue is empty. Each
   * value is delivered at most once. If the store has removed a value but its answer is lost, or
   * arrives after the caller gave up, nobody gets that value.
   *
   * @param key the queue
   * @param timeout the time allowed from now; zero does not wait
   * @throws StoreQueueEmptyException if the queue is empty and {@code timeout} is zero or negative
   * @throws StoreTimeoutException if the queue is still empty at the deadline
   */
  byte[] queuePop(String key, Duration timeout);

  /**
   * Returns the number of values in a queue.
   *
   * @param key the queue
   */
  long queueLength(String key);

  /** Returns the keys under the store's prefix, sorted, without the prefix. */
  List<String> listKeys();

  /**
   * Waits until as many callers have reached the same barrier as it has members.
   *
   * <p>A key can be used for any number of rounds, as long as all members take part in each.
   *
   * @param key the name of the barrier
   * @param size the number of members
   * @param timeout the time allowed from now
   * @throws StoreTimeoutException giving the number of members that came, if some are missing at
   *     the deadline
   */
  void barrier(String key, int size, Duration timeout);

  /**
   * Opens an independent handle to the same data, with a connection of its own if the store uses
   * connections.
   *
   * @return a store, to be closed by the caller
   */
  Store duplicate();

  /** Closes this handle; further calls have no effect. */
  @Override
  void close();

  /**
   * The result of a {@link #compareSet}.
   *
   * @param stored whether the desired value was stored
   * @param value the current value, or null if the key is absent
   */
  @SuppressWarnings("ArrayRecordComponent") // bytes are what a store holds; callers own the copy
  record Swap(boolean stored, byte @Nullable [] value) {}
}
