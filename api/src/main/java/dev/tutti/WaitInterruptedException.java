package dev.tutti;

import org.jspecify.annotations.Nullable;

/**
 * Thrown when an interrupt ends the wait for an operation, and nothing else: the operation is still
 * running and uses its tensors, and its group stays usable. The thread is still interrupted.
 */
public class WaitInterruptedException extends TuttiException {
  private static final long serialVersionUID = 1L;

  /**
   * Creates an exception.
   *
   * @param message what the thread waited for
   * @param cause the interrupt, if the wait threw one
   */
  public WaitInterruptedException(String message, @Nullable Throwable cause) {
    super(message, cause);
  }
}
