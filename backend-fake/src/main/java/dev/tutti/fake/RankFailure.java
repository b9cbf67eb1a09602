package dev.tutti.fake;

import dev.tutti.CollectiveException;
import dev.tutti.TuttiException;
import org.jspecify.annotations.Nullable;

/**
 * Describes briefly, among the suppressed exceptions of a world's failure, which rank failed and
 * how.
 *
 * <p>It has no cause, because ranks fail because of each other, and their causes would be printed
 * again for each rank. The cause is available from {@link #failure()}.
 */
public final class RankFailure extends TuttiException {
  private static final long serialVersionUID = 1L;
  private static final StackTraceElement[] NO_FRAMES = {};

  private final int rank;
  private final @Nullable Throwable failure;

  private RankFailure(int rank, String message, @Nullable Throwable failure) {
    super(message, null);
    this.rank = rank;
    this.failure = failure;
    // Where an operation failed because of another rank is no news; where a test failed is.
    setStackTrace(
        failure == null || failure instanceof TuttiException ? NO_FRAMES : failure.getStackTrace());
  }

  static RankFailure of(int rank, Throwable failure) {
    return new RankFailure(rank, "rank " + rank + " failed: " + failure, failure);
  }

  /**
   * Describes which rank's failure is reported, and, if that failure names another rank as the
   * first to fail, also that rank.
   */
  static RankFailure reported(int rank, Throwable failure) {
    int first = failure instanceof CollectiveException known ? known.failedRank().orElse(-1) : rank;
    String text =
        first < 0 || first == rank
            ? "rank " + rank + " was the first to fail"
            : "rank " + rank + " threw this because of rank " + first;
    return new RankFailure(rank, text, null);
  }

  /** Returns the rank that failed. */
  public int rank() {
    return rank;
  }

  /** Returns what the rank threw, or null if that is the exception that suppresses this one. */
  public @Nullable Throwable failure() {
    return failure;
  }
}
