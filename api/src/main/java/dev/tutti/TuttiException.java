package dev.tutti;

import dev.tutti.spi.Printable;
import org.jspecify.annotations.Nullable;

/**
 * The root of all unchecked exceptions that Tutti throws to report a failure. Characters in
 * messages that would control a terminal are escaped.
 */
public class TuttiException extends RuntimeException {
  private static final long serialVersionUID = 1L;

  /**
   * Creates an exception.
   *
   * @param message what failed, where, and what was expected
   */
  public TuttiException(String message) {
    super(Printable.lines(message));
  }

  /**
   * Creates an exception with its cause.
   *
   * @param message what failed, where, and what was expected
   * @param cause the underlying cause, if any
   */
  public TuttiException(String message, @Nullable Throwable cause) {
    super(Printable.lines(message), cause);
  }
}
