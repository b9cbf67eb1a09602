package dev.tutti.runtime.view;

import dev.tutti.runtime.failure.AgreedFailure;
import dev.tutti.runtime.failure.Blame;
import dev.tutti.runtime.view.JobRecords.Failed;
import dev.tutti.spi.PeerLateException;
import dev.tutti.spi.Printable;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.SortedMap;
import java.util.TreeMap;

/**
 * The failures of groups, judged again from the evidence in the records of their ranks.
 *
 * @param verdicts what happened to each group, each with the ranks of it whose evidence says so
 * @param problems the verdicts that do not follow from the evidence that is recorded with them
 */
record Replay(List<Judged> verdicts, List<String> problems) {
  /** A failure that was judged again. */
  record Judged(String group, String what, String who) {
    /** Describes the failure, without what has been said before. */
    String after(String said) {
      return "group " + group + ": " + (said.startsWith(what) ? "" : what + "; ") + who;
    }
  }

  static Replay of(JobRecords records) {
    Replay replay = new Replay(new ArrayList<>(), new ArrayList<>());
    records.failures().forEach(replay::judge);
    return replay;
  }

  private void judge(String group, SortedMap<Integer, Failed> failures) {
    Map<AgreedFailure, SortedMap<Integer, Failed>> alike = new LinkedHashMap<>();
    for (Failed failure : failures.values()) {
      AgreedFailure again = Blame.judge(failure.evidence());
      int rank = failure.evidence().self();
      String text = Printable.line(again.describe(rank));
      String thrown = Printable.line(failure.text());
      if (again.failedRank() == failure.verdict() && text.equals(thrown)) {
        alike.computeIfAbsent(again, _ -> new TreeMap<>()).put(rank, failure);
      } else {
        problems.add(
            "group %s: rank %d threw \"%s\", but its evidence says \"%s\""
                .formatted(group, rank, thrown, text));
      }
    }
    alike.forEach(
        (verdict, same) -> {
          boolean isAdopted = same.values().stream().allMatch(Failed::isAdopted);
          String who = "the evidence of " + PeerLateException.ranks(List.copyOf(same.keySet()));
          String how = isAdopted ? " says the same, but another rank found it" : " says the same";
          verdicts.add(new Judged(group, Printable.line(verdict.describe(-1)), who + how));
        });
  }
}
