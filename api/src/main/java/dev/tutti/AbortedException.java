package dev.tutti;

import org.jspecify.annotations.Nullable;

/**
 * Reports an operation that was ended by {@code abort()}, by a failure of its group, or by close.
 */
public class AbortedException extends CollectiveException {
  private static final long serialVersionUID = 1L;

  /**
   * Creates an exception.
   *
   * @param message what failed
   * @param info the facts of the failure
   * @param cause the failure below, if there is one
   */
  public AbortedException(String message, FailureInfo info, @Nullable Throwable cause) {
    super(message, info, cause);
  }
}
