package dev.tutti.cli.run;

import static java.util.function.Predicate.not;

import dev.tutti.cli.process.Posix;
import dev.tutti.cli.process.RestartRefusals;
import dev.tutti.cli.rank.LaunchedProcess;
import java.util.List;
import java.util.Map;
import java.util.function.Consumer;

/** The changes of the ranks of a node while the others continue; used by the launcher's thread. */
final class ElasticRanks {
  private final LaunchPlan plan;
  private final RestartRefusals refusals;
  private final Consumer<String> messages;
  private final LaunchOutput output;
  private final Starter starter;

  /** Starts processes. */
  interface Starter {
    /**
     * Starts a process.
     *
     * @param local the number of its place on this node
     * @param number how many processes were started after the first ones, which names its logs
     * @param environment its complete environment
     * @throws dev.tutti.cli.process.LaunchException if it cannot be started
     */
    LaunchedProcess start(Attempt attempt, int local, int number, Map<String, String> environment);
  }

  /**
   * Creates it.
   *
   * @param plan the plan of this node
   * @param refusals which ranks would fail again
   * @param messages receives what was done
   * @param output waits for the output of processes that others replace
   * @param starter starts processes
   */
  ElasticRanks(
      LaunchPlan plan,
      RestartRefusals refusals,
      Consumer<String> messages,
      LaunchOutput output,
      Starter starter) {
    this.plan = plan;
    this.refusals = refusals;
    this.messages = messages;
    this.output = output;
    this.starter = starter;
  }

  /** Starts a process in place of one that has failed; returns whether it may. */
  boolean replace(Attempt attempt, RankExit exit) {
    int local = exit.rank() - attempt.range.firstRank();
    LaunchedProcess failed = attempt.ranks.get(local);
    // Ranks of other nodes may be there to take another process.
    boolean isLast = plan.nodes() == 1 && attempt.exits.size() == attempt.ranks.size() - 1;
    if (!plan.isElastic()
        || exit.code() == 0
        || attempt.released.contains(exit.rank())
        || isLast
        || attempt.phase != Attempt.Phase.RUNNING
        || attempt.verdict != null
        || attempt.first != null
        || attempt.replaced == plan.maxRestarts()
        || refusals.has(attempt.number, exit.rank())) {
      return false;
    }
    attempt.replaced++;
    messages.accept(
        "rank %d %s; another process joins in its place, restart %d of %d"
            .formatted(exit.rank(), exit.describe(), attempt.replaced, plan.maxRestarts()));
    failed.tree().kill();
    attempt.watch.remove(failed.tree().pid());
    output.add(failed);
    Map<String, String> environment = RankEnvironment.ofJoiner(plan, attempt.range, local);
    int number = attempt.replaced + attempt.added;
    attempt.ranks.set(local, starter.start(attempt, local, number, environment));
    return true;
  }

  /** Runs as many ranks as requested, and returns what was done, in words. */
  String scale(Attempt attempt, int ranks) {
    List<LaunchedProcess> staying = attempt.staying();
    boolean isEnding = attempt.exits.keySet().stream().anyMatch(not(attempt.released::contains));
    if (attempt.phase != Attempt.Phase.RUNNING || attempt.verdict != null || isEnding) {
      return "the job ends, so its number of ranks stays";
    }
    for (LaunchedProcess last : staying.subList(Math.min(ranks, staying.size()), staying.size())) {
      attempt.released.add(last.rank());
      last.tree().signal(Posix.SIGTERM);
    }
    for (int more = ranks - staying.size(); more > 0; more--) {
      add(attempt);
    }
    return "from %d to %d ranks".formatted(staying.size(), ranks);
  }

  /** Starts a process that joins, in the place of one that was ended on request, or a new one. */
  private void add(Attempt attempt) {
    int local = 0;
    int first = attempt.range.firstRank();
    while (local < attempt.ranks.size() && !attempt.exits.containsKey(first + local)) {
      local++;
    }
    attempt.added++;
    Map<String, String> environment = RankEnvironment.ofJoiner(plan, attempt.range, local);
    LaunchedProcess added =
        starter.start(attempt, local, attempt.replaced + attempt.added, environment);
    if (local == attempt.ranks.size()) {
      attempt.ranks.add(added);
    } else {
      output.add(attempt.ranks.set(local, added));
      attempt.exits.remove(first + local);
      attempt.released.remove(first + local);
    }
  }
}
