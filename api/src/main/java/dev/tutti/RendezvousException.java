package dev.tutti;

import org.jspecify.annotations.Nullable;

/** Reports that the ranks of a job could not meet: a missing setting, a bad URL or a late rank. */
public class RendezvousException extends TuttiException {
  private static final long serialVersionUID = 1L;

  /**
   * Creates an exception.
   *
   * @param message what failed, where, and what was expected
   */
  public RendezvousException(String message) {
    super(message);
  }

  /**
   * Creates an exception with its cause.
   *
   * @param message what failed, where, and what was expected
   * @param cause the failure below, if there is one
   */
  public RendezvousException(String message, @Nullable Throwable cause) {
    super(message, cause);
  }
}
