package dev.tutti;

import java.time.Duration;
import java.util.OptionalInt;
import org.jspecify.annotations.Nullable;

/**
 * Thrown when an operation of a process group fails. It names the operation that failed, on which
 * rank, after how long, and which rank failed first.
 */
public class CollectiveException extends TuttiException {
  private static final long serialVersionUID = 1L;

  private final FailureInfo info;

  /**
   * Creates an exception.
   *
   * @param message what failed; {@link FailureInfo#describe()} is appended to it
   * @param info the facts of the failure
   * @param cause the underlying cause, if any
   */
  public CollectiveException(String message, FailureInfo info, @Nullable Throwable cause) {
    super(message + " [" + info.describe() + "]", cause);
    this.info = info;
  }

  /** Returns the facts of the failure. */
  public FailureInfo info() {
    return info;
  }

  /** Returns the rank that reports the failure. */
  public int rank() {
    return info.rank();
  }

  /** Returns the first rank known to have failed, or empty if none is known. */
  public OptionalInt failedRank() {
    return info.failedRank();
  }

  /** Returns the operation. */
  public OpType opType() {
    return info.opType();
  }

  /** Returns the operation's sequence number in its group. */
  public long sequenceNumber() {
    return info.sequenceNumber();
  }

  /** Returns how long the operation had run. */
  public Duration elapsed() {
    return info.elapsed();
  }
}
