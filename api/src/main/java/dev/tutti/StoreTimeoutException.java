package dev.tutti;

import java.util.List;
import org.jspecify.annotations.Nullable;

/** Reports a store operation that did not end before its deadline; see {@link #keys()}. */
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
   * Creates an exception that knows for what the call waited.
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
   * @param cause the failure below, if there is one
   */
  public StoreTimeoutException(String message, @Nullable Throwable cause) {
    super(message, cause);
    this.keys = new String[0];
  }

  /**
   * Returns for what the call waited: the missing keys, or the key of the queue or barrier. They
   * are as the store below has them, with the prefixes of a {@code PrefixStore}. Empty where the
   * call did not wait for keys.
   */
  public List<String> keys() {
    return List.of(keys);
  }
}
