package dev.tutti;

import org.jspecify.annotations.Nullable;

/**
 * Thrown when ranks call operations that do not belong together, or exchange messages that do not
 * match; the message says what each rank called. {@link #failedRank()} names the rank that differs
 * from the majority.
 */
public class MismatchException extends CollectiveException {
  private static final long serialVersionUID = 1L;

  /**
   * Creates an exception.
   *
   * @param message what failed
   * @param info the facts of the failure
   * @param cause the underlying cause, if any
   */
  public MismatchException(String message, FailureInfo info, @Nullable Throwable cause) {
    super(message, info, cause);
  }
}
