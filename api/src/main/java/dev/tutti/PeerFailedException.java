package dev.tutti;

import org.jspecify.annotations.Nullable;

/** Reports that another rank failed or died; {@link #failedRank()} names the first one. */
public class PeerFailedException extends CollectiveException {
  private static final long serialVersionUID = 1L;

  /**
   * Creates an exception.
   *
   * @param message what failed
   * @param info the facts of the failure
   * @param cause the failure below, if there is one
   */
  public PeerFailedException(String message, FailureInfo info, @Nullable Throwable cause) {
    super(message, info, cause);
  }
}
