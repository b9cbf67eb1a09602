package dev.tutti;

import org.jspecify.annotations.Nullable;

/** Reports a store operation that did not end before its deadline; the message names the keys. */
public class StoreTimeoutException extends StoreException {
  private static final long serialVersionUID = 1L;

  /**
   * Creates an exception.
   *
   * @param message what failed, where, and what was expected
   */
  public StoreTimeoutException(String message) {
    super(message);
  }

  /**
   * Creates an exception with its cause.
   *
   * @param message what failed, where, and what was expected
   * @param cause the failure below, if there is one
   */
  public StoreTimeoutException(String message, @Nullable Throwable cause) {
    super(message, cause);
  }
}
