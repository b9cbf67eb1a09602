package dev.tutti.cli.run;

import dev.tutti.cli.rank.DeathWatch;
import dev.tutti.cli.rank.LaunchedProcess;
import dev.tutti.cli.run.LaunchRendezvous.Verdict;
import dev.tutti.runtime.failure.JobVerdict;
import dev.tutti.spi.Time;
import java.time.Duration;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.CopyOnWriteArrayList;
import org.jspecify.annotations.Nullable;

/** The state of a running attempt. */
final class Attempt {
  /** How far the end of an attempt has come. */
  enum Phase {
    RUNNING,
    LINGERING,
    STOPPING,
    KILLED
  }

  final int number;
  final Time time;
  final long startNanos;

  /** Also read by the shutdown hook. */
  final List<LaunchedProcess> ranks = new CopyOnWriteArrayList<>();

  final Map<Integer, RankExit> exits = new TreeMap<>();
  @Nullable RankExit first;
  @Nullable Verdict verdict;
  @Nullable Verdict proposed;
  Optional<JobVerdict> ofRanks = Optional.empty();
  boolean hasAskedRanks;
  Phase phase = Phase.RUNNING;
  long deadline;

  final DeathWatch watch;

  final RankRange range;

  /** How many processes have taken the place of others. */
  int replaced;

  /** How many processes were added on request. */
  int added;

  /** The ranks that were ended on request. */
  final Set<Integer> released = new HashSet<>();

  Attempt(int number, RankRange range, DeathWatch watch, Time time) {
    this.number = number;
    this.time = time;
    this.startNanos = time.nanoTime();
    this.range = range;
    this.watch = watch;
  }

  /** Describes the end of a process that has just ended. */
  RankExit exit(int rank, Process ended) {
    Duration after = Duration.ofNanos(time.nanoTime() - startNanos);
    return new RankExit(rank, ended.pid(), ended.exitValue(), after, false);
  }

  /** Returns whether the ranks have been asked to end. */
  boolean isAsked() {
    return phase == Phase.STOPPING || phase == Phase.KILLED;
  }

  /** Returns the processes that run and are to continue, the first ones first. */
  List<LaunchedProcess> staying() {
    return ranks.stream()
        .filter(each -> !exits.containsKey(each.rank()) && !released.contains(each.rank()))
        .toList();
  }

  boolean allEnded() {
    return exits.size() == ranks.size();
  }

  /** Returns whether the process of some rank is dead but its end has not been reported yet. */
  boolean hasUnheardEnds() {
    return ranks.stream().anyMatch(rank -> !exits.containsKey(rank.rank()) && rank.isDead());
  }

  void enter(Phase next, Duration atMost) {
    phase = next;
    deadline = time.nanoTime() + atMost.toNanos();
  }

  /** Returns the processes that this process has started itself. */
  Set<Long> started() {
    Set<Long> pids = new HashSet<>(watch.pids());
    ranks.forEach(rank -> pids.add(rank.tree().pid()));
    return pids;
  }

  void killRunning() {
    ranks.stream().filter(LaunchedProcess::isRunning).forEach(rank -> rank.tree().kill());
  }
}
