package dev.tutti;

import org.jspecify.annotations.Nullable;

/**
 * Reports that an interrupt ended the wait for an operation, and nothing else: the operation is
 * running and still uses its tensors, and its group is well. The thread is still interrupted.
 */
public class WaitInterruptedException extends TuttiException {
  private static final long serialVersionUID = 1L;

  /**
   * Creates an exception.
   *
   * @param message what was waited for
   * @param cause the interrupt, if the wait threw it
   */
  public WaitInterruptedException(String message, @Nullable Throwable cause) {
    super(message, cause);
  }
}
