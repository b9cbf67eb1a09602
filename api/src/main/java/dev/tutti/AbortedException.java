package dev.tutti;

import org.jspecify.annotations.Nullable;

/** Thrown when {@code abort()}, a failure of the group, or closing it ends an operation. */
public class AbortedException extends CollectiveException {
  private static final long serialVersionUID = 1L;

  /**
   * Creates an exception.
   *
   * @param message what failed
   * @param info the facts of the failure
   * @param cause the underlying cause, if any
   */
  public AbortedException(String message, FailureInfo info, @Nullable Throwable cause) {
    super(message, info, cause);
  }
}
