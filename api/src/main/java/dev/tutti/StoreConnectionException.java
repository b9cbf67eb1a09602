package dev.tutti;

import org.jspecify.annotations.Nullable;

/**
 * Thrown when the server of a store cannot be reached or goes away (c10d: {@code
 * DistNetworkError}).
 */
public class StoreConnectionException extends StoreException {
  private static final long serialVersionUID = 1L;

  /**
   * Creates an exception.
   *
   * @param message what failed, where, and what was expected
   */
  public StoreConnectionException(String message) {
    super(message);
  }

  /**
   * Creates an exception with its cause.
   *
   * @param message what failed, where, and what was expected
   * @param cause the underlying cause, if any
   */
  public StoreConnectionException(String message, @Nullable Throwable cause) {
    super(message, cause);
  }
}
