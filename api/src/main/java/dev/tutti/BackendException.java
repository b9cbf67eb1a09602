package dev.tutti;

import org.jspecify.annotations.Nullable;

/** Reports that a backend was not found, is ambiguous, or cannot run here, with the reason. */
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
   * @param cause the failure below, if there is one
   */
  public BackendException(String message, @Nullable Throwable cause) {
    super(message, cause);
  }
}
