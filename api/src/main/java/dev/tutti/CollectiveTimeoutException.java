package dev.tutti;

import org.jspecify.annotations.Nullable;

/** Reports an operation that did not end before its own deadline. */
public class CollectiveTimeoutException extends CollectiveException {
  private static final long serialVersionUID = 1L;

  /**
   * Creates an exception.
   *
   * @param message what failed
   * @param info the facts of the failure
   * @param cause the failure below, if there is one
   */
  public CollectiveTimeoutException(String message, FailureInfo info, @Nullable Throwable cause) {
    super(message, info, cause);
  }
}
