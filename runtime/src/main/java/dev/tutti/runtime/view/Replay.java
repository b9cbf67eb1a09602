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

/** The verdicts on failed groups, judged again from the evidence in the records of their ranks. */
final class Replay {
  /** The verdict on each group, with the ranks of the group whose evidence gives it. */
  final List<Judged> verdicts = new ArrayList<>();

  /** The verdicts that do not follow from the evidence that is recorded with them. */
  final List<String> problems = new ArrayList<>();

  /**
   * A failure that was judged again.
   *
   * @param group the group that failed
   * @param what what happened
   * @param who the ranks whose evidence says so
   */
  record Judged(String group, String what, String who) {
    /** Describes the failure, without what has been said before. */
    String after(String said) {
      return "group " + group + ": " + (said.startsWith(what) ? "" : what + "; ") + who;
    }
  }

  private Replay() {}

  static Replay of(JobRecords records) {
    Replay replay = new Replay();
    records.failures().forEach(replay::judge);
    return replay;
  }

  private void judge(String group, SortedMap<Integer, Failed> failures) {
    Map<AgreedFailure, SortedMap<Integer, Failed>> alike = new LinkedHashMap<>();
    for (Failed failure : failures.values()) {
      AgreedFailure again = Blame.judge(failure.evidence());
      int rank = failure.evidence().self();
      String text = Printable.line(again.describe(rank));
      if (again.failedRank() == failure.verdict() && text.equals(Printable.line(failure.text()))) {
        alike.computeIfAbsent(again, _ -> new TreeMap<>()).put(rank, failure);
      } else {
        problems.add(
            "group %s: rank %d threw \"%s\", but its evidence says \"%s\""
                .formatted(group, rank, Printable.line(failure.text()), text));
      }
    }
    alike.forEach(
        (verdict, same) ->
            verdicts.add(
                new Judged(
                    group,
                    Printable.line(verdict.describe(-1)),
                    "the evidence of %s says the same%s"
                        .formatted(
                            PeerLateException.ranks(List.copyOf(same.keySet())),
                            same.values().stream().allMatch(Failed::isAdopted)
                                ? ", but another rank found it"
                                : ""))));
  }
}
