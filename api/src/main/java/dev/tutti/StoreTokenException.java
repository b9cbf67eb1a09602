package dev.tutti;

import org.jspecify.annotations.Nullable;

/**
 * Thrown when this process and a store server do not have the same job token ({@code TUTTI_TOKEN}),
 * or when only one of them has a token.
 */
public class StoreTokenException extends StoreException {
  private static final long serialVersionUID = 1L;

  /**
   * Creates an exception.
   *
   * @param message what failed, where, and what was expected
   * @param cause the underlying cause, if any
   */
  public StoreTokenException(String message, @Nullable Throwable cause) {
    super(message, cause);
  }
}
