package dev.tutti.runtime.view;

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
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.SortedMap;
import java.util.SortedSet;
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
   *    JVM was paused if pauses explain half of it.
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
    if (failure != null) {
      return failure;
    }
    for (String group : job.records().groups().keySet()) {
      JobVerdict found = ofCalls(job, group);
      if (found != null) {
        return found;
      }
    }
    for (Map.Entry<Integer, Silence> each : job.silent().entrySet()) {
      if (each.getValue() == Silence.NO_RECORD) {
        return noRecord(each.getKey());
      }
    }
    return judge.ofTimes();
  }

  /** Returns the verdict on calls of a group that do not match; null if all match. */
  private static @Nullable JobVerdict ofCalls(JobFacts job, String group) {
    int size = job.records().groups().getOrDefault(group, List.of()).size();
    JobVerdict found = JobVerdict.ofCalls(job.progress(group), size);
    return found == null ? null : inJob(job, group, found);
  }

  /** Returns all that is wrong: calls that do not match, missing records and wrong verdicts. */
  static SortedSet<String> problems(JobFacts job) {
    SortedSet<String> all = new TreeSet<>(job.replay().problems);
    for (String group : job.records().groups().keySet()) {
      JobVerdict found = ofCalls(job, group);
      if (found != null) {
        all.add(found.text());
      }
    }
    job.silent()
        .forEach(
            (rank, why) -> {
              if (why == Silence.NO_RECORD) {
                all.add(noRecord(rank).text());
              }
            });
    return all;
  }

  private static JobVerdict noRecord(int rank) {
    return new JobVerdict(State.FAILED, rank, "rank " + rank + " left no record");
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
    for (RankStanding standing : job.standings().values()) {
      for (Map.Entry<String, InGroup> each : standing.groups().entrySet()) {
        if (!each.getValue().failure().isEmpty()) {
          String text = "group " + each.getKey() + " failed: " + each.getValue().failure();
          return new JobVerdict(State.FAILED, -1, text);
        }
      }
    }
    return null;
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

  /** Judges the operation that has waited longest; null if none has waited for long. */
  private @Nullable JobVerdict longestWait(long hungNanos) {
    int rank = -1;
    String group = "";
    Wait longest = null;
    for (Map.Entry<Integer, RankStanding> each : job.standings().entrySet()) {
      for (Map.Entry<String, InGroup> in : each.getValue().groups().entrySet()) {
        for (Wait wait : in.getValue().waits()) {
          if (longest == null || nanos(wait, hungNanos) > nanos(longest, hungNanos)) {
            longest = wait;
            rank = each.getKey();
            group = in.getKey();
          }
        }
      }
    }
    if (longest == null || nanos(longest, hungNanos) < Math.min(SLOW_NANOS, hungNanos)) {
      return null;
    }
    JobVerdict verdict = inJob(job, group, JobVerdict.ofWait(evidence(rank, group, longest)));
    return longest.nanos() >= hungNanos
        ? verdict
        : verdict.rank() < 0 ? null : longest.nanos() < 0 ? verdict : verdict.asSlow();
  }

  /** Returns how long an operation has waited; if that is not known, long enough to be hung. */
  private static long nanos(Wait wait, long hungNanos) {
    return wait.nanos() < 0 ? hungNanos : wait.nanos();
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
    long span = 0;
    long all = 0;
    long most = -1;
    int worst = -1;
    for (Map.Entry<Integer, Lag> each : job.lags().ranks().entrySet()) {
      long total = each.getValue().totalNanos();
      span = Math.max(span, each.getValue().spanNanos);
      all += total;
      if (total > most) {
        most = total;
        worst = each.getKey();
      }
    }
    Lag lag = job.lags().of(worst);
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
                JobVerdict.inWords(Duration.ofNanos(lag.totalNanos())),
                100.0 * lag.totalNanos() / Math.max(1, spanNanos)));
  }

  /**
   * Judges the pauses that kept others waiting most; null if none did.
   *
   * @param only the rank to look at; -1 for any
   * @param leastNanos how long the pauses of a rank must be
   */
  private @Nullable JobVerdict ofPauses(int only, long leastNanos) {
    SortedMap<Integer, Long> paused = new TreeMap<>();
    SortedMap<Integer, HeldUp> longest = new TreeMap<>();
    for (HeldUp held : job.lags().heldUp()) {
      int rank = held.call().rank();
      if (only < 0 || rank == only) {
        paused.merge(rank, held.pausedNanos(), Long::sum);
        longest.merge(rank, held, (a, b) -> b.pausedNanos() > a.pausedNanos() ? b : a);
      }
    }
    int worst = -1;
    for (Map.Entry<Integer, Long> each : paused.entrySet()) {
      worst = worst < 0 || each.getValue() > paused.getOrDefault(worst, 0L) ? each.getKey() : worst;
    }
    HeldUp held = longest.get(worst);
    long total = paused.getOrDefault(worst, 0L);
    return held == null || total < Math.max(PAUSE_NANOS, leastNanos)
        ? null
        : new JobVerdict(
            State.PAUSED,
            worst,
            "rank %d's JVM was paused for %s: %s, before %s"
                .formatted(
                    worst,
                    JobVerdict.inWords(Duration.ofNanos(total)),
                    held.what(),
                    held.call().describe()));
  }
}
