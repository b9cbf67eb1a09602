package dev.tutti.runtime.view;

import dev.tutti.runtime.failure.JobVerdict;
import dev.tutti.runtime.operation.RankProgress;
import dev.tutti.runtime.view.RankStanding.InGroup;
import dev.tutti.runtime.view.RankStanding.Wait;
import java.util.List;
import java.util.SortedMap;
import java.util.SortedSet;
import java.util.TreeMap;
import java.util.TreeSet;
import org.jspecify.annotations.Nullable;

/**
 * What is known about a job, from which it is judged.
 *
 * @param records the operations and pauses
 * @param standings where each rank stands that answers or left a record
 * @param silent why the other ranks say nothing
 * @param failure why the job failed, as its ranks wrote it, or null
 * @param lags which ranks come last
 * @param replay the failures in the records, judged again
 */
record JobFacts(
    JobRecords records,
    SortedMap<Integer, RankStanding> standings,
    SortedMap<Integer, Silence> silent,
    @Nullable JobVerdict failure,
    Lags lags,
    Replay replay) {
  JobFacts(
      JobRecords records,
      SortedMap<Integer, RankStanding> standings,
      SortedMap<Integer, Silence> silent,
      @Nullable JobVerdict failure) {
    this(records, standings, silent, failure, Lags.of(records), Replay.of(records));
  }

  /** Returns the failures of groups, in words, without what has been said before. */
  List<String> failures(String said) {
    SortedSet<String> all = new TreeSet<>();
    replay.verdicts().forEach(judged -> all.add(judged.after(said)));
    for (RankStanding standing : standings.values()) {
      standing.groups().values().stream()
          .filter(in -> !records.failures().containsKey(in.group()))
          .filter(in -> !in.failure().isEmpty() && !said.endsWith(in.failure()))
          .forEach(in -> all.add("group " + in.group() + ": " + in.failure()));
    }
    return List.copyOf(all);
  }

  /** Returns how far each rank of a group has come, by its rank in the group. */
  SortedMap<Integer, RankProgress> progress(String group) {
    SortedMap<Integer, RankProgress> all = new TreeMap<>();
    List<Integer> ranks = records.groups().getOrDefault(group, List.of());
    for (int i = 0; i < ranks.size(); i++) {
      RankStanding standing = standings.get(ranks.get(i));
      InGroup in = standing == null ? null : standing.groups().get(group);
      if (in != null) {
        all.put(i, in.progress());
      } else if (standing != null || silent.get(ranks.get(i)) == Silence.LEFT) {
        all.put(i, RankProgress.ofClosed());
      }
    }
    return all;
  }

  /**
   * Returns which ranks an operation waits for: those that have not come, or the peer.
   *
   * @param rank the rank that waits
   */
  List<Integer> waitsFor(int rank, String group, Wait wait) {
    List<Integer> ranks = records.groups().getOrDefault(group, List.of());
    if (wait.op().type().isPointToPoint()) {
      int peer = wait.op().peer();
      return peer < 0 || peer >= ranks.size() ? List.of() : List.of(ranks.get(peer));
    }
    return ranks.stream()
        .filter(other -> other != rank && !hasCome(other, group, wait.op().sequence()))
        .toList();
  }

  private boolean hasCome(int rank, String group, long sequence) {
    RankStanding standing = standings.get(rank);
    InGroup in = standing == null ? null : standing.groups().get(group);
    return in != null && in.progress().issued() >= sequence;
  }
}
