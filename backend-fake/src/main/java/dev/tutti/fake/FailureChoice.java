package dev.tutti.fake;

import dev.tutti.CollectiveException;
import dev.tutti.PeerFailedException;
import java.util.List;
import org.jspecify.annotations.Nullable;

/** Chooses which of the failures of a world's ranks to report. */
final class FailureChoice {
  private FailureChoice() {}

  /**
   * Returns the failure of the first rank that failed: the rank that the earliest failure names, if
   * it has a failure of its own, and otherwise the rank of the earliest failure.
   *
   * @param failures the failures in the order in which the bodies ended, at least one
   * @param world the name of the group of all ranks
   */
  static RankFailure first(List<RankFailure> failures, String world) {
    RankFailure earliest = failures.getFirst();
    if (earliest.failure() instanceof CollectiveException known
        && known.info().group().equals(world)) {
      for (RankFailure each : failures) {
        if (each.rank() == known.failedRank().orElse(-1) && isOwn(each.failure())) {
          return each;
        }
      }
    }
    return earliest;
  }

  /**
   * Returns whether a rank failed by itself, rather than because of others or because the run was
   * ending.
   */
  private static boolean isOwn(@Nullable Throwable failure) {
    for (Throwable each = failure; each != null; each = each.getCause()) {
      if (each instanceof PeerFailedException || each instanceof InterruptedException) {
        return false;
      }
    }
    return failure != null;
  }
}
