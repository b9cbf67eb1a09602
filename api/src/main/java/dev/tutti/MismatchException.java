package dev.tutti;

import org.jspecify.annotations.Nullable;

/**
 * Reports that ranks called operations that do not belong together, or messages that do not fit,
 * with what each rank called. {@link #failedRank()} names the rank that differs from most.
 */
public class MismatchException extends CollectiveException {
  private static final long serialVersionUID = 1L;

  /**
   * Creates an exception.
   *
   * @param message what failed
   * @param info the facts of the failure
   * @param cause the failure below, if there is one
   */
  public MismatchException(String message, FailureInfo info, @Nullable Throwable cause) {
    super(message, info, cause);
  }
}
