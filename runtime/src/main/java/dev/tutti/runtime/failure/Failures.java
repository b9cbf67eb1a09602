package dev.tutti.runtime.failure;

import dev.tutti.FailureInfo;
import dev.tutti.OpType;
import dev.tutti.TuttiException;
import dev.tutti.cpu.wait.Latch;
import dev.tutti.runtime.events.Events;
import dev.tutti.runtime.failure.FailureEvent.Kind;
import dev.tutti.runtime.operation.GroupIdentity;
import dev.tutti.runtime.operation.OperationState;
import dev.tutti.runtime.operation.OrderedSet;
import dev.tutti.runtime.operation.RankProgress;
import dev.tutti.spi.PeerLostException;
import dev.tutti.spi.Time;
import java.lang.System.Logger.Level;
import java.time.Duration;
import java.util.Map;
import java.util.SortedSet;
import java.util.TreeSet;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicReference;
import org.jspecify.annotations.Nullable;

/** Handles the failure of a group: notifies the other ranks, and finds which rank failed first. */
public final class Failures implements MonitoredGroup {
  /*
   * Whatever fails first on this rank calls begin(); later calls do nothing. The group is failing
   * from then on, or once the job monitor has another rank's failure, so that no operation
   * begins in between. The monitor finds out which failure was the first of all ranks and whom it
   * blames; its verdict ends the group on a thread of its own, and then opens the latch. Operations
   * that fail wait for the latch to get what to throw, so all of them, on all ranks, name the same
   * first failure.
   *
   * A store that hangs or is gone can delay this but not prevent it: the monitor decides alone when
   * its limits pass, and a waiting thread does if even the monitor is silent. The first verdict
   * stands.
   */
  private static final System.Logger LOG = System.getLogger(Failures.class.getName());

  private final GroupIdentity identity;
  private final Time time;
  private final JobMonitor monitor;
  private final FailingGroup group;
  private final AtomicReference<@Nullable FailureEvent> known = new AtomicReference<>();
  private final AtomicReference<@Nullable Judged> judged = new AtomicReference<>();
  private final Latch settled;
  private final OrderedSet<Runnable> listeners = new OrderedSet<>();
  private final Map<Throwable, OperationState> causes = new ConcurrentHashMap<>();

  /** A verdict, and what it was made from. */
  private record Judged(Evidence evidence, AgreedFailure verdict) {}

  public Failures(GroupIdentity identity, JobMonitor monitor, FailingGroup group) {
    this.identity = identity;
    this.time = identity.time();
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

  /** Returns the ranks that the agreed failure shows to be lost, to have left, or to be silent. */
  public SortedSet<Integer> lost() {
    SortedSet<Integer> lost = new TreeSet<>();
    Judged first = judged.get();
    if (first != null) {
      lost.addAll(first.evidence.silent());
      if (first.verdict.event().kind() == Kind.PEER_LOST && first.verdict.failedRank() >= 0) {
        lost.add(first.verdict.failedRank());
      }
    }
    return lost;
  }

  /** Returns whether something has failed, on this rank or another. */
  public boolean isFailing() {
    return known.get() != null;
  }

  /** Runs a step that does not block when something fails; at once if something has failed. */
  public void whenFailing(Runnable step) {
    listeners.add(step);
    if (isFailing()) {
      step.run();
    }
  }

  public void forget(Runnable step) {
    listeners.remove(step);
  }

  /** Connects this rank with the monitor of its job. */
  public void start() {
    monitor.join(identity, this, true);
  }

  /** Begins to fail the group; may be called from any thread, and never blocks. */
  public void begin(FailureEvent event) {
    if (!group.isGone() && learn(event)) {
      monitor.report(event);
    }
  }

  @Override
  public void failing(FailureEvent event) {
    boolean _ = learn(event);
  }

  @Override
  public RankProgress standing() {
    return group.standing();
  }

  @Override
  public RankProgress answer(FailureEvent event) {
    return group.answer(event);
  }

  /** Releases all waiting threads and ends set-ups of subgroups, because the group is closed. */
  public void close() {
    settled.open();
    listeners.copy().forEach(Runnable::run);
  }

  /** Returns whether the group was closed. */
  public boolean isGone() {
    return group.isGone();
  }

  /**
   * Lets time pass for failures that are not settled, and for questions.
   *
   * @return how long it may take until the next call, in nanoseconds
   */
  public long tick() {
    return monitor.tick();
  }

  /** Waits until the ranks agree on the failure; null if nothing has failed. */
  @Nullable
  public AgreedFailure await() {
    FailureEvent first = known.get();
    if (first == null) {
      return null;
    }
    if (!monitor.await(settled)) {
      int server = monitor.serverOf(identity);
      Evidence alone = Evidence.of(first, identity, server, false).withoutStore();
      settle(alone, Blame.judge(alone));
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
    FailureEvent first = known.get();
    return first != null && first.isOf(op.type(), op.sequenceNumber(), identity.rank());
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
    boolean isFirst = known.compareAndSet(null, event);
    if (isFirst) {
      listeners.copy().forEach(Runnable::run);
    }
    return isFirst;
  }

  @Override
  public void settle(Evidence evidence, AgreedFailure agreed) {
    if (group.isGone() || !judged.compareAndSet(null, new Judged(evidence, agreed))) {
      return;
    }
    String text = agreed.describe(identity.rank());
    LOG.log(
        Level.DEBUG, "rank {0}, group {1}: failed: {2}", identity.rank(), identity.name(), text);
    FailureEvent event = agreed.event();
    Events.get()
        .failure(
            identity.name(),
            identity.rank(),
            event.kind().name(),
            agreed.failedRank(),
            event.op().label(),
            event.sequence(),
            text);
    Runnable recorder = group.recorder();
    Thread down =
        time.unstarted(
            "tutti-down-" + identity.name() + "-" + identity.rank(),
            () -> {
              try {
                group.tearDown(exceptionOf(agreed));
              } finally {
                settled.open();
              }
              if (recorder != null) {
                recorder.run();
              }
            });
    if (!down.isVirtual()) {
      // The process stays until the record is written.
      down.setDaemon(recorder == null);
    }
    down.start();
  }

  private FailureEvent eventOf(OperationState op, Throwable cause, int failedRank) {
    Blame blame = Blame.of(cause, failedRank, identity.rank(), monitor.serverOf(identity));
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
