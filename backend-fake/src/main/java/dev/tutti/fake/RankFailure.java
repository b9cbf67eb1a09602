package dev.tutti.fake;

import dev.tutti.CollectiveException;
import dev.tutti.TuttiException;
import org.jspecify.annotations.Nullable;

/**
 * Says in short, among the suppressed exceptions of a world's failure, which rank failed with what.
 *
 * <p>It has no cause: ranks fail because of each other, so their causes would be printed again for
 * each rank. {@link #failure()} has them.
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
    // Where an operation failed because of another rank says nothing new; where a test did, does.
    setStackTrace(
        failure == null || failure instanceof TuttiException ? NO_FRAMES : failure.getStackTrace());
  }

  static RankFailure of(int rank, Throwable failure) {
    return new RankFailure(rank, "rank " + rank + " failed: " + failure, failure);
  }

  /** Says whose failure is reported, and that it names another rank as the first where it does. */
  static RankFailure reported(int rank, Throwable failure) {
    int first = failure instanceof CollectiveException known ? known.failedRank().orElse(-1) : rank;
    String text =
        first < 0 || first == rank
            ? "rank " + rank + " was the first to fail"
            : "rank " + rank + " threw this, because of rank " + first;
    return new RankFailure(rank, text, null);
  }

  /** Returns the rank that failed. */
  public int rank() {
    return rank;
  }

  /** Returns what the rank threw; null where that is the exception that suppresses this one. */
  public @Nullable Throwable failure() {
    return failure;
  }
}
