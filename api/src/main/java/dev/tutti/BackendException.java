package dev.tutti;

import org.jspecify.annotations.Nullable;

/**
 * Thrown when no backend is found, when several fit, or when a backend cannot run here; the message
 * gives the reason.
 */
public class BackendException extends TuttiException {
  private static final long serialVersionUID = 1L;

  /**
   * Creates an exception.
   *
   * @param message what failed, where, and what was expected
   */
  public BackendException(String message) {
    super(message);
  }

  /**
   * Creates an exception with its cause.
   *
   * @param message what failed, where, and what was expected
   * @param cause the underlying cause, if any
   */
  public BackendException(String message, @Nullable Throwable cause) {
    super(message, cause);
  }
}
