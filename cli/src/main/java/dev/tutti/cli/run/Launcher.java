package dev.tutti.cli.run;

import dev.tutti.StoreException;
import dev.tutti.cli.process.LaunchException;
import dev.tutti.cli.process.Posix;
import dev.tutti.cli.process.Reasons;
import dev.tutti.cli.process.RestartRefusals;
import dev.tutti.cli.run.LaunchRendezvous.Verdict;
import dev.tutti.cli.run.LaunchRendezvous.Verdict.Kind;
import dev.tutti.runtime.failure.FailureLog.Blame;
import java.io.IOException;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/**
 * Runs the ranks of one node until all end well, or one fails on whichever node, or a signal comes;
 * then ends the rest, and starts all of them again as often as the plan allows. After a failure the
 * rest may linger first, to find out who is gone and to say so.
 *
 * <p>Everything that happens comes as an event to one queue, which the thread of {@link #run} takes
 * from; so no state is shared. That thread also starts the processes, and must live as long as they
 * do: the system ties a child's parent-death signal to it.
 */
public final class Launcher {
  /** How long after SIGKILL a process may take to go. */
  private static final Duration SETTLE = Duration.ofSeconds(10);

  /** How long output may take to come after the last process ended. */
  private static final Duration OUTPUT_TIMEOUT = Duration.ofSeconds(2);

  /** How much longer than that nodes wait for each other. */
  private static final Duration MARGIN = Duration.ofSeconds(5);

  private final LaunchPlan plan;
  private final LaunchRendezvous rendezvous;
  private final RankOutput output;
  private final Consumer<String> messages;
  private final RestartRefusals refusals;
  private final BlockingQueue<Event> events = new LinkedBlockingQueue<>();
  private final Object signalLock = new Object();

  /** The first signal that came, 0 before. */
  private volatile int signal;

  /** The threads that wait for other nodes, which a signal ends. */
  private @Nullable Thread waiting;

  private sealed interface Event {
    record Ended(int attempt, RankExit exit) implements Event {}

    record Decided(int attempt, Verdict verdict) implements Event {}

    record Signalled(int signal) implements Event {}
  }

  private enum Phase {
    RUNNING,
    LINGERING,
    STOPPING,
    KILLED
  }

  /** Holds what is known of a running attempt. */
  private static final class Attempt {
    final int number;

    /** Also read by the shutdown hook. */
    final List<LaunchedProcess> ranks = new CopyOnWriteArrayList<>();

    final Map<Integer, RankExit> exits = new TreeMap<>();
    @Nullable RankExit first;
    @Nullable Verdict verdict;
    @Nullable Verdict proposed;
    Optional<Blame> blame = Optional.empty();
    boolean askedForBlame;
    Phase phase = Phase.RUNNING;
    long deadline;

    Attempt(int number) {
      this.number = number;
    }

    /** Tells whether the ranks were asked to end. */
    boolean isAsked() {
      return phase == Phase.STOPPING || phase == Phase.KILLED;
    }

    boolean allEnded() {
      return exits.size() == ranks.size();
    }

    /** Tells whether a rank's process is dead of whose end nobody has heard yet. */
    boolean hasUnheardEnds() {
      return ranks.stream().anyMatch(rank -> !exits.containsKey(rank.rank()) && rank.isDead());
    }

    void enter(Phase next, Duration atMost) {
      phase = next;
      deadline = System.nanoTime() + atMost.toNanos();
    }

    void killRunning() {
      ranks.stream().filter(LaunchedProcess::isRunning).forEach(rank -> rank.tree().kill());
    }
  }

  /**
   * Creates a launcher.
   *
   * @param plan what to run
   * @param rendezvous how the nodes agree; the caller closes it
   * @param output takes what ranks print
   * @param messages takes what the launcher itself has to say, a line or several at a time
   */
  public Launcher(
      LaunchPlan plan, LaunchRendezvous rendezvous, RankOutput output, Consumer<String> messages) {
    this.plan = plan;
    this.rendezvous = rendezvous;
    this.output = output;
    this.messages = messages;
    this.refusals = RestartRefusals.open(plan.maxRestarts());
  }

  /**
   * Tells of a signal to this process; from any thread.
   *
   * @param number its number
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
   * Runs the ranks to their end.
   *
   * @return 0, or the exit code of the first failing rank, or 128 and the signal's number
   * @throws LaunchException if they cannot be started, or other nodes are lost
   */
  public int run() throws InterruptedException {
    try (refusals) {
      return runAttempts();
    }
  }

  private int runAttempts() throws InterruptedException {
    String program = plan.command().getFirst();
    if (ProcessTree.find(program, plan.environment()).isEmpty()) {
      String text = "no such program: " + program;
      String where = plan.nodes() == 1 ? "" : "node " + plan.nodeRank() + ": ";
      rendezvous.refuse(new Verdict(Kind.STOPPED, plan.nodeRank(), -1, 127, where + text));
      throw new LaunchException(127, text);
    }
    RankRange ranks = unlessSignalled(() -> rendezvous.join(messages));
    if (ranks == null) {
      rendezvous.refuse(stopped(signal));
      return stoppedBetweenAttempts();
    }
    for (int number = 0; ; number++) {
      Verdict verdict = runAttempt(number, ranks);
      endCache(verdict);
      if (verdict.kind() != Kind.FAILED || number == plan.maxRestarts()) {
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
          "starting all ranks again, restart " + (number + 1) + " of " + plan.maxRestarts());
    }
  }

  /** Returns how long a node may take from the first failure until its ranks are gone. */
  private Duration longestStop() {
    Duration stop = plan.linger().plus(plan.grace().multipliedBy(2)).plus(SETTLE);
    return stop.plus(OUTPUT_TIMEOUT).plus(MARGIN);
  }

  /** Waits for other nodes. */
  private interface Meeting<T> {
    T await() throws InterruptedException;
  }

  /** Waits for other nodes; returns null if a signal came before the end of that. */
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
        messages.accept("cannot keep " + cache.file() + ": " + Reasons.of(e));
      }
    }
  }

  private Verdict runAttempt(int number, RankRange ranks) throws InterruptedException {
    Attempt attempt = new Attempt(number);
    Thread lastResort = new Thread(attempt::killRunning, "tutti-kill");
    Runtime.getRuntime().addShutdownHook(lastResort);
    try {
      rendezvous.begin(number, verdict -> events.add(new Event.Decided(number, verdict)));
      startAll(attempt, ranks);
      return supervise(attempt);
    } finally {
      attempt.killRunning();
      try {
        Runtime.getRuntime().removeShutdownHook(lastResort);
      } catch (IllegalStateException e) {
        // The JVM is on its way out, and the hook with it.
      }
    }
  }

  private void startAll(Attempt attempt, RankRange ranks) {
    for (int local = 0; local < plan.localSize(); local++) {
      int rank = ranks.firstRank() + local;
      try {
        attempt.ranks.add(
            LaunchedProcess.start(
                rank,
                plan.command(local),
                refusals.addTo(
                    RankEnvironment.of(plan, ranks, local, attempt.number), attempt.number, rank),
                output,
                plan.logDirectory(rank, attempt.number),
                plan.tailLines(),
                exit -> events.add(new Event.Ended(attempt.number, exit))));
      } catch (IOException e) {
        String text = "cannot start rank " + rank + ": " + Reasons.of(e);
        propose(attempt, new Verdict(Kind.STOPPED, plan.nodeRank(), -1, 126, text));
        throw new LaunchException(126, text, e);
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
    long outputDeadline = System.nanoTime() + OUTPUT_TIMEOUT.toNanos();
    for (LaunchedProcess rank : attempt.ranks) {
      rank.awaitOutput(outputDeadline);
    }
    Verdict verdict = attempt.verdict;
    if (verdict == null) {
      throw new LaunchException(1, "the other nodes did not say how they ended");
    }
    if (verdict.kind() != Kind.SUCCESS) {
      askForBlame(attempt);
      Blame blame = attempt.blame.orElse(null);
      messages.accept(FailureReport.write(plan, verdict, blame, attempt.ranks, attempt.exits));
    }
    return verdict;
  }

  /** Waits for the next event; null at the deadline of what is being waited for. */
  private @Nullable Event next(Attempt attempt) throws InterruptedException {
    if (attempt.phase == Phase.RUNNING) {
      return events.take();
    }
    long wait = attempt.deadline - System.nanoTime();
    return events.poll(Math.max(0, wait), TimeUnit.NANOSECONDS);
  }

  private void handle(Attempt attempt, Event event) {
    switch (event) {
      case Event.Ended(int number, RankExit exit) when number == attempt.number -> {
        attempt.exits.put(exit.rank(), attempt.isAsked() ? exit.onRequest() : exit);
        ended(attempt, exit);
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
      case Event.Ended late -> {}
      case Event.Decided late -> {}
    }
  }

  /**
   * Takes note of an end. The ends of several processes are heard of in any order: while one has
   * died and was not heard of, nobody who merely exited is called the first, for a killed rank may
   * be why the others failed.
   */
  private void ended(Attempt attempt, RankExit exit) {
    RankExit first = attempt.first;
    if (exit.code() != 0 && (first == null || (exit.isKilled() && !first.isKilled()))) {
      first = exit;
      attempt.first = exit;
    }
    if (first == null) {
      if (attempt.allEnded()) {
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
            + (refused ? "; it would fail again and is not restarted" : "");
    Kind kind = refused ? Kind.REFUSED : Kind.FAILED;
    return new Verdict(kind, plan.nodeRank(), exit.rank(), exit.code(), text);
  }

  /** Says how this node's part ended: once, but that it is stopped also after its own success. */
  private void propose(Attempt attempt, Verdict verdict) {
    Verdict before = attempt.proposed;
    if (before == null || (before.kind() == Kind.SUCCESS && verdict.kind() == Kind.STOPPED)) {
      attempt.proposed = verdict;
      rendezvous.propose(attempt.number, verdict);
    }
  }

  /** Ends the ranks after the verdict; those who may yet find out what failed get time for it. */
  private void end(Attempt attempt, Kind kind) {
    if (kind == Kind.FAILED && plan.linger().isPositive()) {
      attempt.enter(Phase.LINGERING, plan.linger());
    } else if (kind != Kind.SUCCESS) {
      stop(attempt, Posix.SIGTERM);
    }
  }

  /** Asks once, before ranks that are ended here blame each other for that. */
  private void askForBlame(Attempt attempt) {
    Verdict verdict = attempt.verdict;
    if (!attempt.askedForBlame && verdict != null && verdict.kind() == Kind.FAILED) {
      attempt.blame = rendezvous.blame(attempt.number);
    }
    attempt.askedForBlame = true;
  }

  private void stop(Attempt attempt, int signal) {
    askForBlame(attempt);
    attempt.enter(Phase.STOPPING, plan.grace());
    for (LaunchedProcess rank : attempt.ranks) {
      if (rank.isRunning()) {
        rank.tree().signal(signal);
      }
    }
  }

  /** Ends what the ranks' processes left behind when they ended. */
  private void sweep(Attempt attempt) {
    List<ProcessTree> left =
        attempt.ranks.stream().map(LaunchedProcess::tree).filter(ProcessTree::isAlive).toList();
    left.forEach(tree -> tree.signal(Posix.SIGTERM));
    long deadline = System.nanoTime() + plan.grace().toNanos();
    while (left.stream().anyMatch(ProcessTree::isAlive)
        && System.nanoTime() < deadline
        && events.stream().noneMatch(Event.Signalled.class::isInstance)) {
      LockSupport.parkNanos(TimeUnit.MILLISECONDS.toNanos(2));
    }
    left.stream().filter(ProcessTree::isAlive).forEach(ProcessTree::kill);
  }
}
