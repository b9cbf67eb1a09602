package dev.tutti.runtime.view;

import dev.tutti.runtime.failure.FailureLog;
import dev.tutti.runtime.failure.JobVerdict;
import dev.tutti.runtime.status.StatusQuery;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.SortedMap;
import java.util.SortedSet;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;

/**
 * What is known about a job at one moment: who is alive, where each rank stands and for whom it
 * waits, what it did last, and the verdict. Immutable, except for the records.
 */
public final class JobView {
  private final JobFacts facts;
  private final JobVerdict verdict;

  private JobView(JobFacts facts) {
    this.facts = facts;
    this.verdict = JobJudge.judge(facts);
  }

  /** Shows what the records of ranks say. */
  public static JobView of(JobRecords records) {
    Set<String> bare =
        records.operations().values().stream()
            .flatMap(List::stream)
            .filter(RankOperation::isOfTorch)
            .map(RankOperation::group)
            .collect(Collectors.toSet());
    SortedMap<Integer, RankStanding> standings = new TreeMap<>();
    for (int rank : records.operations().keySet()) {
      standings.put(rank, RankStanding.of(rank, records, bare));
    }
    SortedMap<Integer, Silence> silent = new TreeMap<>();
    records.groups().values().stream()
        .flatMap(List::stream)
        .filter(rank -> !standings.containsKey(rank))
        .forEach(rank -> silent.put(rank, Silence.NO_RECORD));
    return new JobView(new JobFacts(records, standings, silent, null));
  }

  /**
   * Shows what ranks answer about themselves.
   *
   * @param answers the answers that are there, by rank
   * @param silent why the other ranks do not answer
   * @param failure why the job failed, if its ranks say so; else null
   * @throws IllegalArgumentException if an answer is none
   */
  public static JobView of(
      SortedMap<Integer, Map<?, ?>> answers,
      SortedMap<Integer, Silence> silent,
      @Nullable JobVerdict failure) {
    JobRecords records = JobRecords.empty();
    SortedMap<Integer, RankStanding> standings = new TreeMap<>();
    answers.forEach((rank, map) -> standings.put(rank, RankStanding.of(map, rank, records)));
    return new JobView(new JobFacts(records, standings, silent, failure));
  }

  /**
   * Asks all ranks of a running job once more, and shows what they answer.
   *
   * @param limit how long to wait for answers
   * @throws IllegalArgumentException if an answer is none, as may be one of another version
   */
  public static JobView of(StatusQuery query, Duration limit) {
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
    return of(
        answers, silent, FailureLog.verdict(query.store(), query.ranks().size()).orElse(null));
  }

  /** Returns the state of the job, and the rank to blame. */
  public JobVerdict verdict() {
    return verdict;
  }

  /** Returns which ranks come last. */
  public Lags lags() {
    return facts.lags();
  }

  /** Returns the operations and pauses that are known. */
  public JobRecords records() {
    return facts.records();
  }

  /** Returns what is wrong beside the verdict: calls that do not match, and missing records. */
  public List<String> problems() {
    SortedSet<String> all = new TreeSet<>(facts.replay().problems());
    JobJudge.problems(facts).forEach(problem -> all.add(problem.text()));
    all.remove(verdict.text());
    return List.copyOf(all);
  }

  /** Returns the lines of a page of text: the verdict, a table of the ranks, and details. */
  public List<String> lines() {
    return JobTable.lines(facts, verdict, problems());
  }

  /** Returns this view as plain values, whose form docs/job-view.schema.json describes. */
  public Map<String, Object> toMap() {
    return JobTable.toMap(facts, verdict, problems());
  }
}
