package dev.tutti.cuda.share;

import dev.tutti.BackendException;

/** Reports, on all ranks of a group, that they are too many or too far apart to share memory. */
public final class FarRanksException extends BackendException {
  private static final long serialVersionUID = 1L;

  /**
   * Creates an exception.
   *
   * @param message which rank is where
   */
  public FarRanksException(String message) {
    super(message);
  }
}
