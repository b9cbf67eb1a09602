package dev.tutti.fake;

import dev.tutti.TuttiException;

/**
 * Thrown when ranks of a {@link ThreadedWorld} do not end in time; contains the stacks of all
 * ranks.
 */
public final class WorldTimeoutException extends TuttiException {
  private static final long serialVersionUID = 1L;

  WorldTimeoutException(String message) {
    super(message);
  }
}
