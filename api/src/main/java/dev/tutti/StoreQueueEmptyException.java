package dev.tutti;

import org.jspecify.annotations.Nullable;

/** Thrown by a non-blocking pop from an empty queue (c10d: {@code DistQueueEmptyError}). */
public class StoreQueueEmptyException extends StoreException {
  private static final long serialVersionUID = 1L;

  /**
   * Creates an exception.
   *
   * @param message what failed, where, and what was expected
   */
  public StoreQueueEmptyException(String message) {
    super(message);
  }

  /**
   * Creates an exception with its cause.
   *
   * @param message what failed, where, and what was expected
   * @param cause the underlying cause, if any
   */
  public StoreQueueEmptyException(String message, @Nullable Throwable cause) {
    super(message, cause);
  }
}
