package dev.tutti;

import java.util.List;
import org.jspecify.annotations.Nullable;

/** Thrown when a store operation does not end before its deadline; see {@link #keys()}. */
public class StoreTimeoutException extends StoreException {
  private static final long serialVersionUID = 1L;

  private final String[] keys;

  /**
   * Creates an exception.
   *
   * @param message what failed, where, and what was expected
   */
  public StoreTimeoutException(String message) {
    this(message, List.of());
  }

  /**
   * Creates an exception that says what the call waited for.
   *
   * @param message what failed, where, and what was expected
   * @param keys the missing keys, the queue or the barrier
   */
  public StoreTimeoutException(String message, List<String> keys) {
    super(message);
    this.keys = keys.toArray(String[]::new);
  }

  /**
   * Creates an exception with its cause.
   *
   * @param message what failed, where, and what was expected
   * @param cause the underlying cause, if any
   */
  public StoreTimeoutException(String message, @Nullable Throwable cause) {
    super(message, cause);
    this.keys = new String[0];
  }

  /**
   * Returns what the call waited for: the missing keys, or the key of the queue or barrier. The
   * keys are as the underlying store has them, including the prefixes of a {@code PrefixStore}. The
   * list is empty if the call did not wait for keys.
   */
  public List<String> keys() {
    return List.of(keys);
  }
}
