package dev.tutti.cli.run;

import static java.util.function.Predicate.not;

import dev.tutti.StoreException;
import dev.tutti.cli.process.LaunchException;
import dev.tutti.cli.process.Posix;
import dev.tutti.cli.process.Reasons;
import dev.tutti.cli.process.RestartRefusals;
import dev.tutti.cli.run.LaunchRendezvous.Verdict;
import dev.tutti.cli.run.LaunchRendezvous.Verdict.Kind;
import dev.tutti.runtime.failure.JobVerdict;
import java.io.IOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.locks.LockSupport;
import java.util.function.BooleanSupplier;
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

  private static final Duration OUTPUT_TICK = Duration.ofMillis(20);

  /** How often orphans are reaped. */
  private static final Duration REAP = Duration.ofSeconds(1);

  /** The additional time that nodes wait for each other. */
  private static final Duration MARGIN = Duration.ofSeconds(5);

  private final LaunchPlan plan;
  private final LaunchRendezvous rendezvous;
  private final RankOutput output;
  private final RankOutput shown = new Shown();
  private final Consumer<String> messages;
  private final Binding binding;
  private final RestartRefusals refusals;
  private final BlockingQueue<Event> events = new LinkedBlockingQueue<>();

  /** Whether the queue holds that nobody reads the output. */
  private final AtomicBoolean toldUnread = new AtomicBoolean();

  /** The pumps of output that has not all been passed on. */
  private final List<OutputPump> pumps = new ArrayList<>();

  private RunLogs logs = RunLogs.NONE;

  private final Object signalLock = new Object();

  /** The first signal that arrived, or 0. */
  private volatile int signal;

  /** The thread that waits for other nodes, which a signal interrupts. */
  private @Nullable Thread waiting;

  private sealed interface Event {
    record Ended(int attempt, RankExit exit) implements Event {}

    record Decided(int attempt, Verdict verdict) implements Event {}

    record Signalled(int signal) implements Event {}

    record Unread() implements Event {}

    record Scale(int ranks, CompletableFuture<String> answer) implements Event {}
  }

  private enum Phase {
    RUNNING,
    LINGERING,
    STOPPING,
    KILLED
  }

  /** The state of a running attempt. */
  private static final class Attempt {
    final int number;
    final long startNanos = System.nanoTime();

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

    Attempt(int number, RankRange range, DeathWatch watch) {
      this.number = number;
      this.range = range;
      this.watch = watch;
    }

    /** Describes the end of a process that has just ended. */
    RankExit exit(int rank, Process ended) {
      Duration after = Duration.ofNanos(System.nanoTime() - startNanos);
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
      deadline = System.nanoTime() + atMost.toNanos();
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
    this(plan, rendezvous, output, messages, Binding.NONE);
  }

  /** Creates a launcher that binds its ranks to processors. */
  Launcher(
      LaunchPlan plan,
      LaunchRendezvous rendezvous,
      RankOutput output,
      Consumer<String> messages,
      Binding binding) {
    this.binding = binding;
    this.plan = plan;
    this.rendezvous = rendezvous;
    this.output = output;
    this.messages = messages;
    this.refusals = RestartRefusals.open(plan.maxRestarts());
  }

  /**
   * Notifies the launcher of a signal to this process; called from any thread.
   *
   * @param number the number of the signal
   */
  public void signalled(int number) {
    synchronized (signalLock) {
      if (signal == 0) {
        signal = number;
      }
      events.add(new Event.Signalled(number));
      if (waiting != null) {
        waiting.interrupt();
      }
    }
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
      awaitOutput(Long.MAX_VALUE);
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
    RankRange ranks = unlessSignalled(() -> rendezvous.join(messages));
    if (ranks == null) {
      rendezvous.refuse(stopped(signal));
      return stoppedBetweenAttempts();
    }
    logs = RunLogs.choose(plan, ranks.firstRank(), messages);
    for (int number = 0; ; number++) {
      Verdict verdict = runAttempt(number, ranks, watch);
      endCache(verdict);
      if (verdict.kind() != Kind.FAILED || number == plan.maxRestarts() || plan.isElastic()) {
        return verdict.code();
      }
      int ended = number;
      Optional<Verdict> next = unlessSignalled(() -> rendezvous.awaitStopped(ended, longestStop()));
      if (next == null) {
        rendezvous.withdraw(number, stopped(signal));
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

  /** A wait for other nodes. */
  private interface Meeting<T> {
    T await() throws InterruptedException;
  }

  /** Waits for other nodes; returns null if a signal arrived before the wait ended. */
  private <T> @Nullable T unlessSignalled(Meeting<T> meeting) throws InterruptedException {
    synchronized (signalLock) {
      if (signal != 0) {
        return null;
      }
      waiting = Thread.currentThread();
    }
    try {
      T result = meeting.await();
      return signal == 0 ? result : null;
    } catch (StoreException | LaunchException | InterruptedException e) {
      if (signal == 0) {
        throw e;
      }
      return null;
    } finally {
      synchronized (signalLock) {
        waiting = null;
        if (signal != 0) {
          // The interrupt was meant for this wait.
          boolean _ = Thread.interrupted();
        }
      }
    }
  }

  private Verdict stopped(int number) {
    String text = "stopped by " + Posix.signalName(number);
    return new Verdict(Kind.STOPPED, plan.nodeRank(), -1, 128 + number, text);
  }

  private int stoppedBetweenAttempts() {
    Verdict verdict = stopped(signal);
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
    Attempt attempt = new Attempt(number, ranks, watch);
    Thread lastResort = new Thread(attempt::killRunning, "tutti-exit");
    Runtime.getRuntime().addShutdownHook(lastResort);
    try {
      rendezvous.begin(number, verdict -> events.add(new Event.Decided(number, verdict)));
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
    return rendezvous.watchScaling((ranks, answer) -> events.add(new Event.Scale(ranks, answer)));
  }

  /** Starts the ranks, as long as no signal waits to be handled. */
  private void startAll(Attempt attempt) {
    for (int local = 0; local < plan.localSize() && signal == 0; local++) {
      Map<String, String> environment =
          RankEnvironment.of(plan, attempt.range, local, attempt.number);
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
              ended -> events.add(new Event.Ended(attempt.number, attempt.exit(rank, ended))));
      attempt.watch.add(started.tree().pid());
      return started;
    } catch (IOException e) {
      String text = "cannot start rank " + rank + ": " + Reasons.of(e);
      propose(attempt, new Verdict(Kind.STOPPED, plan.nodeRank(), -1, 126, text));
      throw new LaunchException(126, text, e);
    }
  }

  /** Starts a process in place of one that has failed; returns whether it may. */
  private boolean replace(Attempt attempt, RankExit exit) {
    int local = exit.rank() - attempt.range.firstRank();
    LaunchedProcess failed = attempt.ranks.get(local);
    // Ranks of other nodes may be there to take another process.
    boolean isLast = plan.nodes() == 1 && attempt.exits.size() == attempt.ranks.size() - 1;
    if (!plan.isElastic()
        || exit.code() == 0
        || attempt.released.contains(exit.rank())
        || isLast
        || attempt.phase != Phase.RUNNING
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
    pumps.addAll(failed.pumps());
    Map<String, String> environment = RankEnvironment.ofJoiner(plan, attempt.range, local);
    int number = attempt.replaced + attempt.added;
    attempt.ranks.set(local, started(attempt, local, number, environment));
    return true;
  }

  /** Runs as many ranks as requested, and returns what was done, in words. */
  private String scale(Attempt attempt, int ranks) {
    List<LaunchedProcess> staying = attempt.staying();
    boolean isEnding = attempt.exits.keySet().stream().anyMatch(not(attempt.released::contains));
    if (attempt.phase != Phase.RUNNING || attempt.verdict != null || isEnding) {
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
    LaunchedProcess added = started(attempt, local, attempt.replaced + attempt.added, environment);
    if (local == attempt.ranks.size()) {
      attempt.ranks.add(added);
    } else {
      pumps.addAll(attempt.ranks.set(local, added).pumps());
      attempt.exits.remove(first + local);
      attempt.released.remove(first + local);
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
        shown,
        logs.of(rank, restart),
        plan.tailLines(),
        OUTPUT_PATIENCE,
        onExit);
  }

  /** Passes on what ranks print, and notices when nobody reads it any more. */
  private final class Shown implements RankOutput {
    @Override
    public void lines(int rank, Channel channel, List<byte[]> lines) {
      output.lines(rank, channel, lines);
      look();
    }

    @Override
    public boolean takesPieces() {
      return output.takesPieces();
    }

    @Override
    public void piece(int rank, Channel channel, byte[] bytes, boolean isLast) {
      output.piece(rank, channel, bytes, isLast);
      look();
    }

    private void look() {
      if (output.isUnread() && toldUnread.compareAndSet(false, true)) {
        events.add(new Event.Unread());
      }
    }
  }

  /** Waits for the verdict of all nodes and for the end of this node's ranks. */
  private Verdict supervise(Attempt attempt) throws InterruptedException {
    while (attempt.verdict == null || !attempt.allEnded()) {
      Event event = next(attempt);
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
    sweep(attempt);
    attempt.ranks.forEach(rank -> pumps.addAll(rank.pumps()));
    awaitOutput(OUTPUT_TIMEOUT.toNanos());
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

  /**
   * Waits until all output has been passed on. Output ends when the last process that holds it
   * ends, or when it is given up.
   */
  private void awaitOutput(long atMostNanos) throws InterruptedException {
    long start = System.nanoTime();
    long before = start;
    while (!pumps.isEmpty() && before - start < atMostNanos) {
      pumps.getFirst().await(OUTPUT_TICK);
      long now = System.nanoTime();
      // While the launcher itself was stopped, the pumps were too.
      long elapsed = Math.min(now - before, 5 * OUTPUT_TICK.toNanos());
      pumps.removeIf(pump -> pump.isDone(elapsed, signal != 0));
      before = now;
    }
  }

  /** Waits for the next event; returns null when the deadline of the current phase has passed. */
  private @Nullable Event next(Attempt attempt) throws InterruptedException {
    if (attempt.phase == Phase.RUNNING) {
      return Orphans.comeHere() ? nextAmongOrphans(attempt) : events.take();
    }
    long wait = attempt.deadline - System.nanoTime();
    return events.poll(Math.max(0, wait), TimeUnit.NANOSECONDS);
  }

  private Event nextAmongOrphans(Attempt attempt) throws InterruptedException {
    Event event = events.poll(REAP.toNanos(), TimeUnit.NANOSECONDS);
    while (event == null) {
      Orphans.reap(attempt.started());
      event = events.poll(REAP.toNanos(), TimeUnit.NANOSECONDS);
    }
    return event;
  }

  private void handle(Attempt attempt, Event event) {
    switch (event) {
      case Event.Ended(int number, RankExit exit) when number == attempt.number -> {
        if (plan.isElastic() && exit.code() != 0) {
          var _ =
              Thread.ofPlatform()
                  .daemon()
                  .name("tutti-lost")
                  .start(() -> rendezvous.reportEnd(number, exit.pid()));
        }
        if (!replace(attempt, exit)) {
          boolean isReleased = attempt.released.contains(exit.rank());
          attempt.exits.put(exit.rank(), attempt.isAsked() || isReleased ? exit.onRequest() : exit);
          ended(attempt, exit);
        }
      }
      case Event.Decided(int number, Verdict verdict) when number == attempt.number -> {
        attempt.verdict = verdict;
        if (attempt.phase == Phase.RUNNING) {
          end(attempt, verdict.kind());
        }
      }
      case Event.Signalled(int number) -> {
        if (attempt.isAsked()) {
          attempt.deadline = System.nanoTime();
        } else {
          stop(attempt, number);
        }
        propose(attempt, stopped(number));
      }
      case Event.Unread() -> {
        toldUnread.set(false);
        if (!attempt.isAsked()) {
          stop(attempt, Posix.SIGTERM);
        }
        String text = "stopped because nobody reads the output any more";
        propose(attempt, Verdict.stopped(plan.nodeRank(), text));
      }
      case Event.Scale(int ranks, CompletableFuture<String> answer) -> {
        String done = scale(attempt, ranks);
        messages.accept("tutti scale: " + done);
        boolean _ = answer.complete(done);
      }
      case Event.Ended late -> {}
      case Event.Decided late -> {}
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
      attempt.ofRanks = rendezvous.verdictOfRanks(attempt.number, attempt.range.worldSize());
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

  /** Ends what the ranks' processes left running when they ended. */
  private void sweep(Attempt attempt) {
    List<ProcessTree> left =
        attempt.ranks.stream().map(LaunchedProcess::tree).filter(ProcessTree::isAlive).toList();
    left.forEach(tree -> tree.signal(Posix.SIGTERM));
    awaitEnd(left, plan.grace(), () -> events.stream().anyMatch(Event.Signalled.class::isInstance));
    left.stream().filter(ProcessTree::isAlive).forEach(ProcessTree::kill);
    awaitEnd(left, SETTLE, () -> false);
  }

  private static void awaitEnd(List<ProcessTree> trees, Duration limit, BooleanSupplier isHurried) {
    long start = System.nanoTime();
    while (trees.stream().anyMatch(ProcessTree::isAlive)
        && System.nanoTime() - start < limit.toNanos()
        && !isHurried.getAsBoolean()) {
      LockSupport.parkNanos(TimeUnit.MILLISECONDS.toNanos(2));
    }
  }
}
