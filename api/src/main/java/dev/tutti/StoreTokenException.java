package dev.tutti;

import org.jspecify.annotations.Nullable;

/**
 * Reports that this process and a store server do not have the same job token ({@code
 * TUTTI_TOKEN}), or that only one of them has one.
 */
public class StoreTokenException extends StoreException {
  private static final long serialVersionUID = 1L;

  /**
   * Creates an exception.
   *
   * @param message what failed, where, and what was expected
   * @param cause the failure below, if there is one
   */
  public StoreTokenException(String message, @Nullable Throwable cause) {
    super(message, cause);
  }
}
