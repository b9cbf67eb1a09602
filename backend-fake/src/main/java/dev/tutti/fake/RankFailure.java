package dev.tutti.fake;

import dev.tutti.TuttiException;
import org.jspecify.annotations.Nullable;

/** Says, among the suppressed exceptions of a world's failure, which rank failed with what. */
public final class RankFailure extends TuttiException {
  private static final long serialVersionUID = 1L;

  private final int rank;

  RankFailure(int rank, String message, @Nullable Throwable cause) {
    super(message, cause);
    this.rank = rank;
    setStackTrace(new StackTraceElement[0]);
  }

  /** Returns the rank that failed. */
  public int rank() {
    return rank;
  }
}
