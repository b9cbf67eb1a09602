package dev.tutti.runtime.failure;

import dev.tutti.FailureInfo;
import dev.tutti.OpType;
import dev.tutti.TuttiException;
import dev.tutti.cpu.wait.Latch;
import dev.tutti.runtime.events.Events;
import dev.tutti.runtime.failure.FailureEvent.Kind;
import dev.tutti.runtime.operation.Deadlines;
import dev.tutti.runtime.operation.GroupIdentity;
import dev.tutti.runtime.operation.OperationState;
import dev.tutti.runtime.operation.OrderedSet;
import dev.tutti.runtime.operation.Watchdog;
import dev.tutti.spi.PeerLostException;
import dev.tutti.spi.Time;
import java.lang.System.Logger.Level;
import java.time.Duration;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicReference;
import org.jspecify.annotations.Nullable;

/** Handles the failure of a group: tells the other ranks, and learns which rank failed first. */
public final class Failures {
  /*
   * Whatever fails first on this rank calls begin(); later calls do nothing. A dedicated thread
   * tells the job monitor and so learns the first failure of all ranks, which the monitor passes to
   * onEvent(), once per group, on any thread. From there another thread investigates the failure
   * and settles the verdict: it sets the verdict, tears down the group and opens the latch.
   * Operations that fail wait for the latch to learn what to throw, so all of them, on all ranks,
   * name the same first failure.
   *
   * A store that hangs or is gone can delay this but not prevent it: a rank that cannot report its
   * failure in time decides alone, every further step through the store is bounded, and after the
   * longest of the AnswerTimes a waiting thread or the watchdog settles on what this rank knows. The
   * first verdict stands. Blame defines which rank the verdict names.
   */
  private static final System.Logger LOG = System.getLogger(Failures.class.getName());

  private final GroupIdentity identity;
  private final AnswerTimes times;
  private final Time time;
  private final Watchdog watchdog;
  private final JobMonitor monitor;
  private final FailingGroup group;
  private final AtomicReference<@Nullable Known> known = new AtomicReference<>();
  private final AtomicReference<@Nullable Judged> judged = new AtomicReference<>();
  private final Latch settled;
  private final OrderedSet<Runnable> listeners = new OrderedSet<>();
  private final Map<Throwable, OperationState> causes = new ConcurrentHashMap<>();

  /** The first failure that this rank learned of, and when, by the running time. */
  private record Known(FailureEvent event, long sinceNanos) {}

  /** A verdict, and what it was made from. */
  private record Judged(Evidence evidence, AgreedFailure verdict) {}

  public Failures(GroupIdentity identity, JobMonitor monitor, FailingGroup group) {
    this.identity = identity;
    this.times = monitor.times();
    this.time = identity.time();
    this.watchdog = Watchdog.of(time);
    this.settled = new Latch(time);
    this.monitor = monitor;
    this.group = group;
  }

  /** Returns what the ranks agreed on; null if nothing has failed or they have not agreed yet. */
  @Nullable
  public AgreedFailure verdict() {
    Judged first = judged.get();
    return first == null ? null : first.verdict;
  }

  /** Returns what proves the failure, and the verdict, as plain values; empty without a verdict. */
  public Map<String, Object> toMap() {
    Judged first = judged.get();
    return first == null ? Map.of() : first.verdict.toMap(first.evidence);
  }

  /** Tells whether something has failed, on this rank or another. */
  public boolean isFailing() {
    return known.get() != null;
  }

  /**
   * Runs a step on a thread of its own when something fails; at once if something has already
   * failed.
   */
  public void whenFailing(Runnable step) {
    listeners.add(step);
    if (isFailing()) {
      start(step);
    }
  }

  public void forget(Runnable step) {
    listeners.remove(step);
  }

  /** Begins to fail the group; may be called from any thread, and never blocks. */
  public void begin(FailureEvent event) {
    if (!group.isGone() && learn(event)) {
      start(() -> monitor.report(event));
    }
  }

  /** Receives the first failure of all ranks. */
  public void onEvent(FailureEvent event) {
    if (!group.isGone()) {
      learn(event);
      start(() -> settle(collect(event)));
    }
  }

  /** Releases all waiting threads and ends set-ups of subgroups, because the group is closed. */
  public void close() {
    settled.open();
    listeners.copy().forEach(this::start);
  }

  /** Tells whether the group was closed. */
  public boolean isGone() {
    return group.isGone();
  }

  /** Settles on what this rank knows if the others cannot be asked. */
  public void checkOverdue() {
    Known first = known.get();
    if (first != null && judged.get() == null && leftNanos(first) <= 0) {
      settle(evidence(first.event).withoutStore());
    }
  }

  /**
   * Returns how long the ranks may still take to agree. A standstill of this rank does not count:
   * what the others wrote meanwhile is in the store, and this rank has yet to read it.
   */
  private long leftNanos(Known first) {
    return Deadlines.nanos(times.verdict()) - (watchdog.runningNanos() - first.sinceNanos);
  }

  /** Returns what this rank knows about a failure without asking others. */
  private Evidence evidence(FailureEvent event) {
    boolean paused =
        watchdog.stoodStill(times.standstill())
            && Blame.mayFollowFromStandstill(event, identity.rank());
    return Evidence.of(event, identity, monitor.serverOf(identity.name()), paused);
  }

  /** Waits until the ranks agree on the failure; null if nothing has failed. */
  @Nullable
  public AgreedFailure await() {
    Known first = known.get();
    if (first == null) {
      return null;
    }
    boolean interrupted = false;
    while (true) {
      try {
        long left = leftNanos(first);
        if (left <= 0) {
          settle(evidence(first.event).withoutStore());
        }
        if (left <= 0 || settled.await(time.nanoTime() + left)) {
          break;
        }
      } catch (InterruptedException e) {
        interrupted = true;
      }
    }
    if (interrupted) {
      Thread.currentThread().interrupt();
    }
    return verdict();
  }

  /**
   * Fails the group because of an operation; may be called from any thread, and never blocks.
   *
   * @param failedRank the rank to blame, or -1
   */
  public void operationFailed(OperationState op, Throwable cause, int failedRank) {
    failedWith(op, cause);
    begin(eventOf(op, cause, failedRank));
  }

  /**
   * Fails the group because of an operation, and returns the exception for that operation to throw.
   */
  public TuttiException of(OperationState op, Throwable cause) {
    FailureEvent event = eventOf(op, cause, PeerLostException.rankIn(cause));
    failedWith(op, cause);
    begin(event);
    AgreedFailure agreed = await();
    if (agreed == null) {
      // The group is closed: no rank is left to agree with.
      agreed = new AgreedFailure(event);
    }
    return agreed.exception(describe(op, agreed), ownCause(op, cause));
  }

  /** Describes the failure of an operation, as the ranks agreed on it. */
  public FailureInfo describe(OperationState op, AgreedFailure agreed) {
    int blamed = agreed.event().failedRank();
    int peer = op.peer() >= 0 || blamed == identity.rank() ? op.peer() : blamed;
    return op.describe(peer, agreed.failedRank());
  }

  private void failedWith(OperationState op, Throwable cause) {
    if (op.type().isPointToPoint()) {
      causes.putIfAbsent(cause, op);
    } else {
      causes.put(cause, op);
    }
  }

  /**
   * Returns the cause of an operation's failure; null if that cause belongs to another operation,
   * as when a backend ends messages with the exception of a failed collective.
   */
  @Nullable
  public Throwable ownCause(OperationState op, @Nullable Throwable reported) {
    if (reported == null || !op.type().isPointToPoint()) {
      return reported;
    }
    boolean early =
        reported instanceof TimeoutException
            && op.endNanos() - op.deadlineNanos() < 0
            && !isFirst(op);
    return early || !op.equals(causes.get(reported)) ? null : reported;
  }

  private boolean isFirst(OperationState op) {
    Known first = known.get();
    return first != null && first.event.isOf(op.type(), op.sequenceNumber(), identity.rank());
  }

  /** Returns the exception of the group as a whole; null while nothing has failed. */
  @Nullable
  public TuttiException groupFailure() {
    AgreedFailure agreed = verdict();
    return agreed == null ? null : exceptionOf(agreed);
  }

  private TuttiException exceptionOf(AgreedFailure agreed) {
    FailureEvent event = agreed.event();
    return agreed.exception(
        info(event.op(), event.sequence(), event.elapsed(), event.failedRank(), agreed), null);
  }

  /** Waits until the ranks agree on a failure, and throws what they agreed on. */
  public void throwAgreed() {
    await();
    TuttiException failure = groupFailure();
    if (failure != null) {
      throw failure;
    }
  }

  /** Throws if something has failed, after waiting until the failure is known. */
  public void refuseIfFailing(OpType type) {
    if (isFailing()) {
      AgreedFailure agreed = await();
      if (agreed != null) {
        throw agreed.refusal(info(type, 0, Duration.ZERO, -1, agreed));
      }
    }
  }

  private FailureInfo info(
      OpType type, long sequence, Duration elapsed, int peer, AgreedFailure agreed) {
    return identity.failure(type, sequence, peer, agreed.failedRank(), elapsed);
  }

  private boolean learn(FailureEvent event) {
    boolean first = known.compareAndSet(null, new Known(event, watchdog.runningNanos()));
    if (first) {
      listeners.copy().forEach(this::start);
    }
    return first;
  }

  private void start(Runnable step) {
    Thread _ = time.start("tutti-fail-" + identity.name() + "-" + identity.rank(), step);
  }

  /** Collects what proves who is to blame. */
  private Evidence collect(FailureEvent event) {
    Evidence known = evidence(event);
    Duration limit =
        event.kind() == Kind.MISMATCH ? times.finding().plus(times.call()) : times.finding();
    long findingBy = time.deadline(limit);
    if (monitor.isUnheard()) {
      return known.withoutStore();
    }
    try {
      if (Blame.isWait(known) && !known.paused()) {
        if (event.kind() == Kind.MISMATCH) {
          group.awaitCall(event, time.deadline(times.call()));
        }
        group.publishProgress(false);
        return monitor.board().investigate(known, identity.globalRanks(), findingBy);
      }
      if (!known.paused() && (event.kind() != Kind.PEER_LOST || event.failedRank() < 0)) {
        return known;
      }
      return BoundedCalls.call(
          time,
          "tutti-ask-" + identity.name() + "-" + identity.rank(),
          times.answer(),
          () ->
              known.paused()
                  ? monitor.board().investigate(known, identity.globalRanks(), findingBy)
                  : monitor.board().withClose(known, identity.globalRanks()));
    } catch (Exception e) {
      LOG.log(
          Level.DEBUG,
          "rank {0}, group {1}: cannot determine which ranks are missing: {2}",
          identity.rank(),
          identity.name(),
          e);
      return evidence(event).withoutStore();
    }
  }

  private void settle(Evidence evidence) {
    AgreedFailure agreed = Blame.judge(evidence);
    if (!judged.compareAndSet(null, new Judged(evidence, agreed))) {
      return;
    }
    LOG.log(
        Level.DEBUG,
        "rank {0}, group {1}: failed: {2}",
        identity.rank(),
        identity.name(),
        agreed.describe(identity.rank()));
    FailureEvent event = agreed.event();
    Events.get()
        .failure(
            identity.name(),
            identity.rank(),
            event.kind().name(),
            agreed.failedRank(),
            event.op().label(),
            event.sequence(),
            agreed.describe(identity.rank()));
    try {
      group.tearDown(exceptionOf(agreed));
    } finally {
      settled.open();
    }
  }

  private FailureEvent eventOf(OperationState op, Throwable cause, int failedRank) {
    Blame blame = Blame.of(cause, failedRank, identity.rank(), monitor.serverOf(identity.name()));
    if (blame.kind() == Kind.MISMATCH && op.type().isPointToPoint()) {
      // Two ranks have no majority; the one that finds the mismatch reports both.
      blame = new Blame(Kind.FAILED, failedRank < 0 ? identity.rank() : failedRank);
    }
    return new FailureEvent(
        identity.name(),
        blame.kind(),
        identity.rank(),
        blame.rank(),
        op.type(),
        op.sequenceNumber(),
        op.peer(),
        op.tag(),
        op.duration(),
        OperationState.textOf(cause));
  }
}
