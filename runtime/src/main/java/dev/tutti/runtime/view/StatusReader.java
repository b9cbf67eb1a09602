package dev.tutti.runtime.view;

import dev.tutti.runtime.failure.FailureLog;
import dev.tutti.runtime.status.StatusQuery;
import java.time.Duration;
import java.util.Map;
import java.util.SortedMap;
import java.util.SortedSet;
import java.util.TreeMap;

/** Makes the view of a running job from what its ranks answer. */
public final class StatusReader {
  private StatusReader() {}

  /**
   * Asks all ranks once more.
   *
   * @param limit how long to wait for answers
   * @throws IllegalArgumentException if an answer is none, as may be one of another version
   */
  public static JobView read(StatusQuery query, Duration limit) {
    SortedMap<Integer, Map<?, ?>> answers = new TreeMap<>();
    query.ask(limit).forEach((rank, bytes) -> answers.put(rank, RankStanding.unzip(bytes)));
    for (Map<?, ?> answer : answers.values()) {
      query.addBelow((int) FlightRecordReader.number(answer.get("size"), 0));
    }
    SortedMap<Integer, Silence> silent = new TreeMap<>();
    SortedSet<Integer> left = query.left();
    for (int rank : query.ranks()) {
      if (!answers.containsKey(rank)) {
        silent.put(
            rank,
            left.contains(rank)
                ? Silence.LEFT
                : query.hasJoined(rank) ? Silence.NO_ANSWER : Silence.NOT_JOINED);
      }
    }
    return JobView.of(
        answers, silent, FailureLog.verdict(query.store(), query.ranks().size()).orElse(null));
  }
}
