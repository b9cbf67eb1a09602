package dev.tutti.cuda.share;

import dev.tutti.BackendException;

/**
 * Thrown on all ranks of a group when there are too many ranks, or they are too far apart, to share
 * memory.
 */
public final class FarRanksException extends BackendException {
  private static final long serialVersionUID = 1L;

  /**
   * Creates an exception.
   *
   * @param message says where each rank is
   */
  public FarRanksException(String message) {
    super(message);
  }
}
