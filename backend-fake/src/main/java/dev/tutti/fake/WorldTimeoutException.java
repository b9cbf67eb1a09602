package dev.tutti.fake;

import dev.tutti.TuttiException;

/**
 * Reports that ranks of a {@link ThreadedWorld} did not end in time, with the stacks of all ranks.
 */
public final class WorldTimeoutException extends TuttiException {
  private static final long serialVersionUID = 1L;

  WorldTimeoutException(String message) {
    super(message);
  }
}
