package dev.tutti.spi;

import dev.tutti.TuttiException;

/**
 * Thrown by a backend, for its group, when ranks called operations that do not belong together; the
 * message says what each rank called. Users get a {@link dev.tutti.MismatchException} whose cause
 * is this exception.
 */
public final class PeerMismatchException extends TuttiException {
  private static final long serialVersionUID = 1L;

  /**
   * Creates an exception.
   *
   * @param message the calls, each with the ranks that made it
   */
  public PeerMismatchException(String message) {
    super(message);
  }
}
