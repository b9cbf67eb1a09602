package dev.tutti.runtime.failure;

import dev.tutti.runtime.failure.FailureEvent.Kind;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Checks the end of a history of a {@link JobModel}.
 *
 * @param model the model, in which nothing more can happen
 */
record EndCheck(JobModel model) {
  /** Checks what holds once nothing more can happen. */
  void run() {
    AgreedFailure agreed = null;
    for (int r = 0; r < model.ranks.length; r++) {
      ModelRank rank = model.ranks[r];
      AgreedFailure verdict = rank.verdict;
      if (rank.isCrashed) {
        continue;
      }
      JobModel.require(rank.isFailing == (verdict != null), "rank " + r + " waits for ever");
      JobModel.require(
          rank.explainBy == 0 || rank.isExplained || rank.hasLeft, "a question has no answer");
      if (verdict == null) {
        continue;
      }
      int blamed = verdict.failedRank();
      // A rank that is cut off cannot detect that it is, and takes the model.server for silent.
      boolean mayBlame = model.isFaulty(blamed) || (rank.isCutOff && blamed == model.server);
      JobModel.require(blamed < 0 || mayBlame, "rank " + r + " blames " + verdict);
      FailureEvent event = verdict.event();
      boolean isOfWait = event.kind() == Kind.TIMEOUT && event.failedRank() != event.reporter();
      if (rank.settled.alone()) {
        JobModel.require(
            !isOfWait
                || rank.settled.paused()
                || model.server < 0
                || model.server == event.reporter()
                || blamed == model.server,
            "rank " + r + " does not name the model.server of a silent store");
        JobModel.require(
            rank.isCutOff || model.isFaulty(model.server),
            "rank " + r + " decides alone though the store answers");
      } else {
        JobModel.require(
            event.kind() != Kind.MISMATCH
                || !model.allAnswer
                || soleOddRank() < 0
                || blamed == soleOddRank(),
            "the rank that called something else is not named");
        boolean isAnyAbsent =
            event.sequence() > 0 && Arrays.asList(model.published).contains(Said.ABSENT);
        JobModel.require(
            !isOfWait || !isAnyAbsent || blamed >= 0, "nobody is named though a rank is absent");
        JobModel.require(
            agreed == null || agreed.failedRank() == blamed,
            "ranks disagree: " + agreed + " and " + verdict);
        agreed = verdict;
      }
    }
  }

  /** Returns the rank whose call all others can distinguish from their own, or -1. */
  private int soleOddRank() {
    List<@Nullable Said> said = Arrays.asList(model.published);
    int odd = said.indexOf(Said.CALLED_OTHER);
    boolean isSole =
        odd == said.lastIndexOf(Said.CALLED_OTHER)
            && 2 * Collections.frequency(said, Said.CALLED) > model.ranks.length;
    return isSole ? odd : -1;
  }
}
