package dev.tutti.checkpoint;

import dev.tutti.TuttiException;
import org.jspecify.annotations.Nullable;

/**
 * Thrown on all ranks if a checkpoint could not be saved or loaded on one of them. Older
 * checkpoints remain as they were.
 */
public final class CheckpointException extends TuttiException {
  private static final long serialVersionUID = 1L;

  /**
   * Creates an exception.
   *
   * @param message what failed, on which rank, with the file and the remedy
   * @param cause the failure of this rank, if it failed
   */
  public CheckpointException(String message, @Nullable Throwable cause) {
    super(message, cause);
  }
}
