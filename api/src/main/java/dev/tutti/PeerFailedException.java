package dev.tutti;

import org.jspecify.annotations.Nullable;

/** Thrown when another rank fails or dies; {@link #failedRank()} names the first one that did. */
public class PeerFailedException extends CollectiveException {
  private static final long serialVersionUID = 1L;

  /**
   * Creates an exception.
   *
   * @param message what failed
   * @param info the facts of the failure
   * @param cause the underlying cause, if any
   */
  public PeerFailedException(String message, FailureInfo info, @Nullable Throwable cause) {
    super(message, info, cause);
  }
}
