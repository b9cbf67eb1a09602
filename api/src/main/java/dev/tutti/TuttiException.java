package dev.tutti;

import org.jspecify.annotations.Nullable;

/** Reports a failure of Tutti; the root of all its unchecked exceptions. */
public class TuttiException extends RuntimeException {
  private static final long serialVersionUID = 1L;

  /**
   * Creates an exception.
   *
   * @param message what failed, where, and what was expected
   */
  public TuttiException(String message) {
    super(message);
  }

  /**
   * Creates an exception with its cause.
   *
   * @param message what failed, where, and what was expected
   * @param cause the failure below, if there is one
   */
  public TuttiException(String message, @Nullable Throwable cause) {
    super(message, cause);
  }
}
