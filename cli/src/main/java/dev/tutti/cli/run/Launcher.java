package dev.tutti.cli.run;

import dev.tutti.cli.process.LaunchException;
import dev.tutti.cli.process.Posix;
import dev.tutti.cli.process.Reasons;
import dev.tutti.cli.process.RestartRefusals;
import dev.tutti.cli.rank.DeathWatch;
import dev.tutti.cli.rank.LaunchedProcess;
import dev.tutti.cli.rank.Leftovers;
import dev.tutti.cli.rank.Orphans;
import dev.tutti.cli.rank.Program;
import dev.tutti.cli.rank.RankOutput;
import dev.tutti.cli.run.Attempt.Phase;
import dev.tutti.cli.run.LaunchRendezvous.Verdict;
import dev.tutti.cli.run.LaunchRendezvous.Verdict.Kind;
import dev.tutti.runtime.failure.JobVerdict;
import dev.tutti.spi.Time;
import java.io.IOException;
import java.time.Duration;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/**
 * A launcher that runs the ranks of one node until all succeed, a rank on any node fails, a signal
 * arrives, or nobody reads the output; then ends the rest, and restarts all of them as often as the
 * plan allows. After a failure, the other ranks may linger first, to find out and report which rank
 * is gone.
 *
 * <p>All events go through one queue, from which the thread of {@link #run} takes them, so no state
 * is shared. That thread also starts the processes, and must live as long as they do, since the
 * system ties a child's parent-death signal to it.
 */
public class Launcher {
  /** How long a process may take to disappear after SIGKILL. */
  private static final Duration SETTLE = Duration.ofSeconds(10);

  /** How long output may take to arrive after the last process has ended. */
  private static final Duration OUTPUT_PATIENCE = Duration.ofSeconds(2);

  /** How long an attempt waits for its output, even if nobody takes it. */
  private static final Duration OUTPUT_TIMEOUT = Duration.ofSeconds(3);

  /** How often orphans are reaped. */
  private static final Duration REAP = Duration.ofSeconds(1);

  /** The additional time that nodes wait for each other. */
  private static final Duration MARGIN = Duration.ofSeconds(5);

  private final Time time;
  private final LaunchPlan plan;
  private final LaunchRendezvous rendezvous;
  private final LaunchOutput output;
  private final Consumer<String> messages;
  private final Binding binding;
  private final RestartRefusals refusals;
  private final ElasticRanks elastic;
  private final BlockingQueue<LaunchEvent> events = new LinkedBlockingQueue<>();

  private final StopSignal signal = new StopSignal();
  private RunLogs logs = RunLogs.NONE;

  /**
   * Creates a launcher.
   *
   * @param plan the plan to run
   * @param rendezvous how the nodes agree; the caller closes it
   * @param output receives what the ranks print
   * @param messages receives the launcher's own messages, one or several lines at a time
   */
  public Launcher(
      LaunchPlan plan, LaunchRendezvous rendezvous, RankOutput output, Consumer<String> messages) {
    this(plan, rendezvous, output, messages, Binding.NONE, Time.SYSTEM);
  }

  /** Creates a launcher that binds its ranks to processors, with a time of its own. */
  Launcher(
      LaunchPlan plan,
      LaunchRendezvous rendezvous,
      RankOutput output,
      Consumer<String> messages,
      Binding binding,
      Time time) {
    this.time = time;
    this.binding = binding;
    this.plan = plan;
    this.rendezvous = rendezvous;
    this.output = new LaunchOutput(output, time, () -> events.add(new LaunchEvent.Unread()));
    this.messages = messages;
    this.refusals = RestartRefusals.open(plan.maxRestarts());
    this.elastic = new ElasticRanks(plan, refusals, messages, this.output, this::started);
  }

  /**
   * Notifies the launcher of a signal to this process; called from any thread.
   *
   * @param number the number of the signal
   */
  public void signalled(int number) {
    signal.arrive(number);
    events.add(new LaunchEvent.Signalled(number));
  }

  /**
   * Runs the ranks to the end.
   *
   * @return 0, or the exit code of the rank that failed first, or 128 plus the number of the
   *     signal, or 1 if nobody reads the output
   * @throws LaunchException if the ranks cannot be started, or other nodes are lost
   */
  public int run() throws InterruptedException {
    try (refusals;
        DeathWatch watch = DeathWatch.start()) {
      return runAttempts(watch);
    } finally {
      output.await(Long.MAX_VALUE, signal::hasArrived);
    }
  }

  private int runAttempts(DeathWatch watch) throws InterruptedException {
    try {
      Program.check(plan.command().getFirst(), plan.environment());
    } catch (LaunchException e) {
      String where = plan.nodes() == 1 ? "" : "node " + plan.nodeRank() + ": ";
      String text = where + e.getMessage();
      rendezvous.refuse(new Verdict(Kind.STOPPED, plan.nodeRank(), -1, e.exitCode(), text));
      throw e;
    }
    RankRange ranks = signal.unlessArrived(() -> rendezvous.join(messages));
    if (ranks == null) {
      rendezvous.refuse(stopped(signal.number()));
      return stoppedBetweenAttempts();
    }
    logs = RunLogs.choose(plan, ranks.firstRank(), messages);
    for (int number = 0; ; number++) {
      Verdict verdict = runAttempt(number, ranks, watch);
      endCache(verdict);
      if (verdict.kind() != Kind.FAILED
          || number == plan.maxRestarts()
          || plan.isElastic()
          || !(rendezvous instanceof Restarts restarts)) {
        return verdict.code();
      }
      int ended = number;
      Optional<Verdict> next =
          signal.unlessArrived(() -> restarts.awaitStopped(ended, longestStop()));
      if (next == null) {
        restarts.withdraw(number, stopped(signal.number()));
        return stoppedBetweenAttempts();
      }
      if (next.isPresent()) {
        messages.accept(next.get().text());
        return next.get().code();
      }
      messages.accept(
          "restarting all ranks, restart " + (number + 1) + " of " + plan.maxRestarts());
    }
  }

  /** Returns how long a node may take from the first failure until its ranks are gone. */
  private Duration longestStop() {
    Duration stop = plan.linger().plus(plan.grace().multipliedBy(2)).plus(SETTLE);
    return stop.plus(OUTPUT_TIMEOUT).plus(MARGIN);
  }

  private Verdict stopped(int number) {
    String text = "stopped by " + Posix.signalName(number);
    return new Verdict(Kind.STOPPED, plan.nodeRank(), -1, 128 + number, text);
  }

  private int stoppedBetweenAttempts() {
    Verdict verdict = stopped(signal.number());
    messages.accept(verdict.text());
    return verdict.code();
  }

  private void endCache(Verdict verdict) {
    if (plan.aotCache().isPresent()) {
      AotCache cache = plan.aotCache().get();
      try {
        cache.end(verdict.kind() == Kind.SUCCESS);
      } catch (IOException e) {
        messages.accept("cannot save " + cache.file() + ": " + Reasons.of(e));
      }
    }
  }

  private Verdict runAttempt(int number, RankRange ranks, DeathWatch watch)
      throws InterruptedException {
    Attempt attempt = new Attempt(number, ranks, watch, time);
    Thread lastResort = new Thread(attempt::killRunning, "tutti-exit");
    Runtime.getRuntime().addShutdownHook(lastResort);
    try {
      rendezvous.begin(number, verdict -> events.add(new LaunchEvent.Decided(number, verdict)));
      startAll(attempt);
      try (Scaling _ = plan.isElastic() ? watchScaling() : null) {
        return supervise(attempt);
      }
    } finally {
      attempt.killRunning();
      attempt.ranks.forEach(rank -> watch.remove(rank.tree().pid()));
      try {
        Runtime.getRuntime().removeShutdownHook(lastResort);
      } catch (IllegalStateException e) {
        // The JVM is already shutting down, and the hook runs.
      }
    }
  }

  private @Nullable Scaling watchScaling() {
    return rendezvous.watchScaling(
        (ranks, answer) -> events.add(new LaunchEvent.Scale(ranks, answer)));
  }

  /** Starts the ranks, as long as no signal waits to be handled. */
  private void startAll(Attempt attempt) {
    for (int local = 0; local < plan.localSize() && !signal.hasArrived(); local++) {
      Map<String, String> environment =
          attempt.range.joins()
              ? RankEnvironment.ofJoiner(plan, attempt.range, local)
              : RankEnvironment.of(plan, attempt.range, local, attempt.number);
      attempt.ranks.add(started(attempt, local, attempt.number, environment));
    }
  }

  private LaunchedProcess started(
      Attempt attempt, int local, int restart, Map<String, String> environment) {
    int rank = attempt.range.firstRank() + local;
    try {
      LaunchedProcess started =
          start(
              rank,
              local,
              restart,
              refusals.addTo(environment, attempt.number, rank),
              ended ->
                  events.add(new LaunchEvent.Ended(attempt.number, attempt.exit(rank, ended))));
      attempt.watch.add(started.tree().pid());
      rendezvous.started(started.tree().pid());
      return started;
    } catch (IOException e) {
      String text = "cannot start rank " + rank + ": " + Reasons.of(e);
      propose(attempt, new Verdict(Kind.STOPPED, plan.nodeRank(), -1, 126, text));
      throw new LaunchException(126, text, e);
    }
  }

  /** Starts a process; tests override it to do something between two starts. */
  LaunchedProcess start(
      int rank, int local, int restart, Map<String, String> environment, Consumer<Process> onExit)
      throws IOException {
    return LaunchedProcess.start(
        rank,
        plan.command(local),
        environment,
        binding.of(local),
        output,
        logs.of(rank, restart),
        plan.tailLines(),
        OUTPUT_PATIENCE,
        onExit);
  }

  /** Waits for the verdict of all nodes and for the end of this node's ranks. */
  private Verdict supervise(Attempt attempt) throws InterruptedException {
    while (attempt.verdict == null || !attempt.allEnded()) {
      LaunchEvent event = next(attempt);
      if (event != null) {
        handle(attempt, event);
      } else if (attempt.phase == Phase.LINGERING) {
        stop(attempt, Posix.SIGTERM);
      } else if (attempt.phase == Phase.STOPPING) {
        attempt.killRunning();
        attempt.enter(Phase.KILLED, SETTLE);
      } else {
        break;
      }
    }
    Leftovers.end(attempt.ranks, time, plan.grace(), SETTLE, this::isSignalled);
    attempt.ranks.forEach(output::add);
    output.await(OUTPUT_TIMEOUT.toNanos(), signal::hasArrived);
    Verdict verdict = attempt.verdict;
    if (verdict == null) {
      throw new LaunchException(1, "the other nodes did not report how they ended");
    }
    if (verdict.kind() != Kind.SUCCESS) {
      askRanks(attempt);
      JobVerdict ofRanks = attempt.ofRanks.orElse(null);
      messages.accept(
          FailureReport.write(plan, verdict, ofRanks, attempt.ranks, attempt.exits, logs));
    }
    return verdict;
  }

  /** Waits for the next event; returns null when the deadline of the current phase has passed. */
  private @Nullable LaunchEvent next(Attempt attempt) throws InterruptedException {
    if (attempt.phase == Phase.RUNNING) {
      return Orphans.comeHere() ? nextAmongOrphans(attempt) : events.take();
    }
    long wait = attempt.deadline - time.nanoTime();
    return events.poll(Math.max(0, wait), TimeUnit.NANOSECONDS);
  }

  private LaunchEvent nextAmongOrphans(Attempt attempt) throws InterruptedException {
    LaunchEvent event = events.poll(REAP.toNanos(), TimeUnit.NANOSECONDS);
    while (event == null) {
      Orphans.reap(attempt.started());
      event = events.poll(REAP.toNanos(), TimeUnit.NANOSECONDS);
    }
    return event;
  }

  private void handle(Attempt attempt, LaunchEvent event) {
    switch (event) {
      case LaunchEvent.Ended(int number, RankExit exit) when number == attempt.number -> {
        if (plan.isElastic() && exit.code() != 0) {
          var _ =
              Thread.ofPlatform()
                  .daemon()
                  .name("tutti-lost")
                  .start(() -> rendezvous.ranks().addLost(number, exit.pid()));
        }
        if (!elastic.replace(attempt, exit)) {
          boolean isReleased = attempt.released.contains(exit.rank());
          attempt.exits.put(exit.rank(), attempt.isAsked() || isReleased ? exit.onRequest() : exit);
          ended(attempt, exit);
        }
      }
      case LaunchEvent.Decided(int number, Verdict verdict) when number == attempt.number -> {
        attempt.verdict = verdict;
        if (attempt.phase == Phase.RUNNING) {
          end(attempt, verdict.kind());
        }
      }
      case LaunchEvent.Signalled(int number) -> {
        if (attempt.isAsked()) {
          attempt.deadline = time.nanoTime();
        } else {
          stop(attempt, number);
        }
        propose(attempt, stopped(number));
      }
      case LaunchEvent.Unread() -> {
        output.notifyAgain();
        if (!attempt.isAsked()) {
          stop(attempt, Posix.SIGTERM);
        }
        String text = "stopped because nobody reads the output any more";
        propose(attempt, Verdict.stopped(plan.nodeRank(), text));
      }
      case LaunchEvent.Scale(int ranks, CompletableFuture<String> answer) -> {
        String done = elastic.scale(attempt, ranks);
        messages.accept("tutti scale: " + done);
        boolean _ = answer.complete(done);
      }
      case LaunchEvent.Ended late -> {}
      case LaunchEvent.Decided late -> {}
    }
  }

  /**
   * Handles the end of a rank. The ends of several processes are reported in any order. While some
   * process has died but has not been reported, a rank that merely exited is not named as the first
   * to fail, since a killed rank may be why the others failed.
   */
  private void ended(Attempt attempt, RankExit exit) {
    RankExit first = attempt.first;
    boolean isFailure = exit.code() != 0 && !attempt.released.contains(exit.rank());
    if (isFailure && (first == null || (exit.isKilled() && !first.isKilled()))) {
      first = exit;
      attempt.first = exit;
    }
    if (first == null) {
      if (attempt.allEnded() && attempt.exits.size() >= plan.localSize()) {
        propose(attempt, new Verdict(Kind.SUCCESS, plan.nodeRank(), -1, 0, ""));
      }
    } else if (first.isKilled() || !attempt.hasUnheardEnds()) {
      propose(attempt, failed(attempt, first));
    }
  }

  private Verdict failed(Attempt attempt, RankExit exit) {
    boolean refused = refusals.has(attempt.number, exit.rank());
    String text =
        "rank "
            + exit.rank()
            + " "
            + exit.describe()
            + (refused ? "; it would fail again, so it is not restarted" : "");
    Kind kind = refused ? Kind.REFUSED : Kind.FAILED;
    return new Verdict(kind, plan.nodeRank(), exit.rank(), exit.code(), text);
  }

  /**
   * Proposes how this node's part ended: only once, except that a stop is also proposed after its
   * own success.
   */
  private void propose(Attempt attempt, Verdict verdict) {
    Verdict before = attempt.proposed;
    if (before == null || (before.kind() == Kind.SUCCESS && verdict.kind() == Kind.STOPPED)) {
      attempt.proposed = verdict;
      rendezvous.propose(attempt.number, verdict);
    }
  }

  /**
   * Ends the ranks after the verdict; ranks that may still find out what failed get time for it.
   */
  private void end(Attempt attempt, Kind kind) {
    if (kind == Kind.FAILED && plan.linger().isPositive()) {
      attempt.enter(Phase.LINGERING, plan.linger());
    } else if (kind != Kind.SUCCESS) {
      stop(attempt, Posix.SIGTERM);
    }
  }

  /** Reads the ranks' verdict once, before ranks that are ended here blame each other for that. */
  private void askRanks(Attempt attempt) {
    Verdict verdict = attempt.verdict;
    if (!attempt.hasAskedRanks && verdict != null && verdict.kind() == Kind.FAILED) {
      attempt.ofRanks = rendezvous.ranks().verdict(attempt.number, attempt.range.worldSize());
    }
    attempt.hasAskedRanks = true;
  }

  private void stop(Attempt attempt, int signal) {
    askRanks(attempt);
    attempt.enter(Phase.STOPPING, plan.grace());
    for (LaunchedProcess rank : attempt.ranks) {
      if (rank.isRunning()) {
        rank.tree().signal(signal);
      }
    }
  }

  private boolean isSignalled() {
    return events.stream().anyMatch(LaunchEvent.Signalled.class::isInstance);
  }
}
