package dev.tutti;

import org.jspecify.annotations.Nullable;

/** Thrown when a store operation fails (c10d: {@code DistStoreError}). */
public class StoreException extends TuttiException {
  private static final long serialVersionUID = 1L;

  /**
   * Creates an exception.
   *
   * @param message what failed, where, and what was expected
   */
  public StoreException(String message) {
    super(message);
  }

  /**
   * Creates an exception with its cause.
   *
   * @param message what failed, where, and what was expected
   * @param cause the underlying cause, if any
   */
  public StoreException(String message, @Nullable Throwable cause) {
    super(message, cause);
  }
}
