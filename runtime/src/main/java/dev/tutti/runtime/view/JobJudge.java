package dev.tutti.runtime.view;

import static java.util.stream.Collectors.groupingBy;
import static java.util.stream.Collectors.toList;

import dev.tutti.runtime.failure.Evidence;
import dev.tutti.runtime.failure.JobVerdict;
import dev.tutti.runtime.failure.JobVerdict.State;
import dev.tutti.runtime.operation.RankProgress;
import dev.tutti.runtime.view.JobRecords.Failed;
import dev.tutti.runtime.view.JobRecords.Taken;
import dev.tutti.runtime.view.Lags.HeldUp;
import dev.tutti.runtime.view.Lags.Lag;
import dev.tutti.runtime.view.RankStanding.InGroup;
import dev.tutti.runtime.view.RankStanding.Wait;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Collections;
import java.util.Comparator;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.SortedMap;
import java.util.TreeMap;
import java.util.TreeSet;
import org.jspecify.annotations.Nullable;

/** Judges a job by what is known about it, and by nothing else. */
final class JobJudge {
  /*
   * The first line that applies decides.
   *
   * 1. A group has failed: its failure, judged by the evidence that the ranks left.
   * 2. Calls do not match.
   * 3. A rank left no record, so what it did is not known.
   * 4. An operation has waited for at least TUTTI_SLOW: the rank that keeps it is hung.
   * 5. A rank that has joined does not answer: it is hung.
   * 6. An operation has waited for at least 5 s: the rank that keeps it is slow.
   * 7. The others waited for one rank for a tenth of the job, at least five times for a millisecond
   *    or longer, and for it twice as long as for all others together: that rank is slow, or its
   *    JVM was paused if pauses explain half of it, or such long waits make up half of it as the
   *    longest one that they explain: a rank remembers few pauses.
   * 8. Others waited at least 100 ms, and a hundredth of the job, for ranks whose JVM was paused.
   */
  private static final long HUNG_NANOS = Duration.ofSeconds(30).toNanos();
  private static final long SLOW_NANOS = Duration.ofSeconds(5).toNanos();
  private static final long LATE_NANOS = 1_000_000;
  private static final long PAUSE_NANOS = 100_000_000;
  private static final int OFTEN = 5;

  private final JobFacts job;

  private JobJudge(JobFacts job) {
    this.job = job;
  }

  static JobVerdict judge(JobFacts job) {
    JobJudge judge = new JobJudge(job);
    JobVerdict failure = judge.failure();
    return failure != null ? failure : problems(job).stream().findFirst().orElseGet(judge::ofTimes);
  }

  /** Returns what is wrong with the records: calls that do not match, then missing records. */
  static List<JobVerdict> problems(JobFacts job) {
    List<JobVerdict> all = new ArrayList<>();
    for (Map.Entry<String, List<Integer>> group : job.records().groups().entrySet()) {
      JobVerdict found = JobVerdict.ofCalls(job.progress(group.getKey()), group.getValue().size());
      if (found != null) {
        all.add(inJob(job, group.getKey(), found));
      }
    }
    for (Map.Entry<Integer, Silence> each : job.silent().entrySet()) {
      if (each.getValue() == Silence.NO_RECORD) {
        int rank = each.getKey();
        all.add(new JobVerdict(State.FAILED, rank, "rank " + rank + " left no record"));
      }
    }
    return all;
  }

  /** Returns a verdict on a group in terms of the ranks of the job. */
  private static JobVerdict inJob(JobFacts job, String group, JobVerdict found) {
    List<Integer> ranks = job.records().groups().getOrDefault(group, List.of());
    int rank = found.rank();
    return group.equals("0")
        ? found
        : found.inGroup(group, rank < 0 || rank >= ranks.size() ? -1 : ranks.get(rank));
  }

  private @Nullable JobVerdict failure() {
    if (job.failure() != null) {
      return job.failure();
    }
    for (Map.Entry<String, SortedMap<Integer, Failed>> each : job.records().failures().entrySet()) {
      SortedMap<Integer, Failed> failures = each.getValue();
      Failed best =
          failures.values().stream()
              .filter(failure -> !failure.isAdopted())
              .findFirst()
              .orElseGet(() -> failures.firstEntry().getValue());
      return inJob(job, each.getKey(), JobVerdict.ofFailure(best.evidence()));
    }
    return job.standings().values().stream()
        .flatMap(standing -> standing.groups().values().stream())
        .filter(in -> !in.failure().isEmpty())
        .map(in -> "group " + in.group() + " failed: " + in.failure())
        .map(text -> new JobVerdict(State.FAILED, -1, text))
        .findFirst()
        .orElse(null);
  }

  private JobVerdict ofTimes() {
    long hungNanos =
        job.records().taken().values().stream()
            .mapToLong(Taken::slowNanos)
            .filter(nanos -> nanos > 0)
            .min()
            .orElse(HUNG_NANOS);
    JobVerdict wait = longestWait(hungNanos);
    if (wait != null && wait.state() != State.SLOW) {
      return wait;
    }
    for (Map.Entry<Integer, Silence> each : job.silent().entrySet()) {
      if (each.getValue() == Silence.NO_ANSWER) {
        int rank = each.getKey();
        return new JobVerdict(State.HUNG, rank, "rank " + rank + " is hung: it does not answer");
      }
    }
    return wait == null ? ofLags() : wait;
  }

  private record Waiting(int rank, String group, Wait op, long nanos) {}

  /**
   * Judges the operation that has waited longest; null if none has waited for long. One of which
   * that is not known counts as hung.
   */
  private @Nullable JobVerdict longestWait(long hungNanos) {
    Waiting longest = null;
    for (Map.Entry<Integer, RankStanding> rank : job.standings().entrySet()) {
      for (InGroup in : rank.getValue().groups().values()) {
        for (Wait wait : in.waits()) {
          long nanos = wait.nanos() < 0 ? hungNanos : wait.nanos();
          if (longest == null || nanos > longest.nanos) {
            longest = new Waiting(rank.getKey(), in.group(), wait, nanos);
          }
        }
      }
    }
    if (longest == null || longest.nanos < Math.min(SLOW_NANOS, hungNanos)) {
      return null;
    }
    Evidence evidence = evidence(longest.rank, longest.group, longest.op);
    JobVerdict verdict = inJob(job, longest.group, JobVerdict.ofWait(evidence));
    return longest.op.nanos() >= hungNanos
        ? verdict
        : verdict.rank() < 0 ? null : longest.op.nanos() < 0 ? verdict : verdict.asSlow();
  }

  private Evidence evidence(int rank, String group, Wait wait) {
    List<Integer> ranks = job.records().groups().getOrDefault(group, List.of());
    SortedMap<Integer, RankProgress> answers = new TreeMap<>(job.progress(group));
    Set<Integer> silent = new HashSet<>();
    Set<Integer> strangers = new TreeSet<>();
    for (int i = 0; i < ranks.size(); i++) {
      if (!answers.containsKey(i)) {
        boolean hasJoined = job.silent().get(ranks.get(i)) == Silence.NO_ANSWER;
        (hasJoined ? silent : strangers).add(i);
      }
    }
    if (wait.op().peer() >= ranks.size()) {
      strangers.add(wait.op().peer());
    }
    return Evidence.ofWait(
        group,
        ranks.indexOf(rank),
        wait.op(),
        Duration.ofNanos(Math.max(0, wait.nanos())),
        ranks.size(),
        answers,
        silent,
        strangers);
  }

  private JobVerdict ofLags() {
    Collection<Lag> lags = job.lags().ranks().values();
    long span = lags.stream().mapToLong(lag -> lag.spanNanos).max().orElse(0);
    long all = lags.stream().mapToLong(Lag::totalNanos).sum();
    int worst =
        job.lags().ranks().entrySet().stream()
            .max(Map.Entry.comparingByValue(Comparator.comparingLong(Lag::totalNanos)))
            .map(Map.Entry::getKey)
            .orElse(-1);
    Lag lag = job.lags().of(worst);
    long most = lag.totalNanos();
    boolean isSlow = lag.times(LATE_NANOS) >= OFTEN && 10 * most >= span && 3 * most >= 2 * all;
    JobVerdict paused = ofPauses(isSlow ? worst : -1, isSlow ? most / 2 : span / 100);
    return paused != null && !(isSlow && paused.rank() != worst)
        ? paused
        : isSlow ? slow(worst, lag, span) : JobVerdict.HEALTHY;
  }

  private static JobVerdict slow(int rank, Lag lag, long spanNanos) {
    return new JobVerdict(
        State.SLOW,
        rank,
        "rank %d is slow: last in %d of %d, others waited %s for it (%.0f %% of the job)"
            .formatted(
                rank,
                lag.times(),
                lag.collectives,
                inWords(lag.totalNanos()),
                100.0 * lag.totalNanos() / Math.max(1, spanNanos)));
  }

  /**
   * Judges the pauses that kept others waiting most; null if none did.
   *
   * @param only the rank to look at; -1 for any
   * @param leastNanos how much the pauses of a rank must explain
   */
  private @Nullable JobVerdict ofPauses(int only, long leastNanos) {
    List<HeldUp> worst =
        job.lags().heldUp().stream()
            .filter(held -> only < 0 || held.call().rank() == only)
            .collect(groupingBy(held -> held.call().rank(), TreeMap::new, toList()))
            .values()
            .stream()
            .max(Comparator.comparingLong(JobJudge::pausedNanos))
            .orElse(List.of());
    long pausedNanos = pausedNanos(worst);
    if (pausedNanos < PAUSE_NANOS) {
      return null;
    }
    HeldUp longest = Collections.max(worst, Comparator.comparingLong(HeldUp::pausedNanos));
    int rank = longest.call().rank();
    long alike = only < 0 ? 0 : job.lags().of(only).totalNanos(longest.lagNanos() / 2);
    if (Math.max(pausedNanos, alike) < leastNanos) {
      return null;
    }
    String times =
        worst.size() == 1
            ? ""
            : " (%d times, at most %s)".formatted(worst.size(), inWords(longest.pausedNanos()));
    return new JobVerdict(
        State.PAUSED,
        rank,
        "rank %d's JVM was paused for %s%s: %s, before %s"
            .formatted(
                rank, inWords(pausedNanos), times, longest.what(), longest.call().describe()));
  }

  private static String inWords(long nanos) {
    return JobVerdict.inWords(Duration.ofNanos(nanos));
  }

  private static long pausedNanos(List<HeldUp> all) {
    return all.stream().mapToLong(HeldUp::pausedNanos).sum();
  }
}
