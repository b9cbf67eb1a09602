package dev.tutti;

import org.jspecify.annotations.Nullable;

/** Thrown when a store is called after it was closed. */
public class StoreClosedException extends StoreException {
  private static final long serialVersionUID = 1L;

  /**
   * Creates an exception.
   *
   * @param message what failed, where, and what was expected
   */
  public StoreClosedException(String message) {
    super(message);
  }

  /**
   * Creates an exception with its cause.
   *
   * @param message what failed, where, and what was expected
   * @param cause the underlying cause, if any
   */
  public StoreClosedException(String message, @Nullable Throwable cause) {
    super(message, cause);
  }
}
