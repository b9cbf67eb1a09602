package dev.tutti.spi;

import dev.tutti.TuttiException;

/**
 * Reports, from a backend to its group, that ranks called operations that do not belong together,
 * with what each rank called. Users get a {@link dev.tutti.MismatchException} with this as its
 * cause.
 */
public final class PeerMismatchException extends TuttiException {
  private static final long serialVersionUID = 1L;

  /**
   * Creates an exception.
   *
   * @param message the calls, each with its ranks
   */
  public PeerMismatchException(String message) {
    super(message);
  }
}
