package dev.tutti.runtime.group;

import dev.tutti.AbortedException;
import dev.tutti.CollectiveTimeoutException;
import dev.tutti.GroupClosedException;
import dev.tutti.GroupListener.OpEvent;
import dev.tutti.OpType;
import dev.tutti.TuttiException;
import dev.tutti.WorkState;
import dev.tutti.runtime.events.Events;
import dev.tutti.runtime.failure.AgreedFailure;
import dev.tutti.runtime.failure.Blame;
import dev.tutti.runtime.failure.BoundedCalls;
import dev.tutti.runtime.failure.FailingGroup;
import dev.tutti.runtime.failure.FailureEvent;
import dev.tutti.runtime.failure.FailureEvent.Kind;
import dev.tutti.runtime.failure.Failures;
import dev.tutti.runtime.failure.JobMonitor;
import dev.tutti.runtime.failure.SlowReports;
import dev.tutti.runtime.operation.BoundBackend;
import dev.tutti.runtime.operation.Deadlines;
import dev.tutti.runtime.operation.FlightRecord;
import dev.tutti.runtime.operation.FlightRecorder;
import dev.tutti.runtime.operation.GroupIdentity;
import dev.tutti.runtime.operation.GroupOperation;
import dev.tutti.runtime.operation.Listeners;
import dev.tutti.runtime.operation.OperationOwner;
import dev.tutti.runtime.operation.OperationSpec;
import dev.tutti.runtime.operation.OperationState;
import dev.tutti.runtime.operation.PathCounts;
import dev.tutti.runtime.operation.PendingOperations;
import dev.tutti.runtime.operation.RankProgress;
import dev.tutti.runtime.operation.Watchdog;
import dev.tutti.runtime.settings.RuntimeSettings;
import dev.tutti.spi.Backend;
import dev.tutti.spi.Operation;
import dev.tutti.spi.Time;
import java.lang.System.Logger.Level;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;

/** One rank of a group in operation: its state, its failure and its end. */
final class Group implements OperationOwner, FailingGroup, Watchdog.Watched {
  private static final System.Logger LOG = System.getLogger(Group.class.getName());
  private static final long SETTLE_NANOS = TimeUnit.SECONDS.toNanos(4);
  private static final Duration FAILING = Duration.ofSeconds(1);

  private enum Life {
    OPEN,
    CLOSING,
    CLOSED
  }

  final GroupIdentity identity;
  final Time time;
  final JobMonitor monitor;
  final Map<String, BoundBackend> backends;

  /** The names of the backends, each once. */
  final String backendNames;

  final FlightRecorder recorder;
  private final Watchdog watchdog;
  final Listeners listeners;
  final Failures failures;
  final PendingOperations pending;
  final OperationRunner runner;
  private final SlowReports slow;
  private final FlightRecords records;
  private final @Nullable NanCheck nanCheck;
  final Standing standing = new Standing(this);

  /** The counts of collectives by path. */
  final PathCounts paths = new PathCounts();

  /** Counts the monitored barriers, equally on all ranks. */
  final AtomicLong monitoredBarriers = new AtomicLong();

  private final Object backendsLock = new Object();
  private boolean backendsClosed;
  private volatile long timeoutNanos;
  private volatile Life life = Life.OPEN;
  private volatile boolean unpublished;

  Group(
      GroupIdentity identity,
      Duration timeout,
      JobMonitor monitor,
      Map<String, BoundBackend> backends,
      FlightRecords records) {
    this.records = records;
    this.identity = identity;
    this.time = identity.time();
    this.watchdog = Watchdog.of(time);
    this.timeoutNanos = Deadlines.nanos(timeout);
    this.monitor = monitor;
    this.backends = backends;
    this.backendNames =
        backends.values().stream()
            .map(BoundBackend::name)
            .distinct()
            .sorted()
            .collect(Collectors.joining(","));
    this.recorder = new FlightRecorder(RuntimeSettings.flightRecord(identity.settings()), time);
    this.listeners = new Listeners(identity.name(), identity.rank(), time);
    this.failures = new Failures(identity, monitor, this);
    this.pending =
        new PendingOperations(
            this,
            BoundBackend.distinct(backends.values()),
            Deadlines.nanos(identity.settings().get(RuntimeSettings.SLOW)));
    this.nanCheck =
        RuntimeSettings.isNanChecked(identity.settings()) ? new NanCheck(identity) : null;
    this.slow = new SlowReports(identity, monitor);
    this.runner = new OperationRunner(this);
  }

  void start() {
    records.add(this);
    tell("made", "");
    watchdog.watch(this);
    failures.start();
  }

  // Callbacks for operations and failures

  @Override
  public GroupIdentity identity() {
    return identity;
  }

  @Override
  public Watchdog watchdog() {
    return watchdog;
  }

  @Override
  public @Nullable Backend backendOf(String deviceType) {
    BoundBackend bound = backends.get(deviceType);
    return bound == null ? null : bound.backend();
  }

  @Override
  public void operationFailed(OperationState op, Throwable cause, int failedRank) {
    failures.operationFailed(op, cause, failedRank);
  }

  @Override
  public void ended(
      GroupOperation op,
      WorkState state,
      @Nullable TuttiException cause,
      @Nullable OpEvent toTell) {
    runner.ended(op, state, cause, toTell);
  }

  @Override
  public void slow(GroupOperation op, long sequence, long elapsedNanos, int others) {
    if (life == Life.OPEN && !failures.isFailing() && !monitor.stoodStill()) {
      slow.report(
          SlowReports.pending(op, sequence),
          Duration.ofNanos(elapsedNanos),
          others,
          () -> op.sequenceNumber() == sequence && !op.isDone() && !failures.isFailing());
    }
  }

  @Override
  public RankProgress standing() {
    return standing.withPlace(isClosed());
  }

  /** Returns whether inputs are searched for NaN before a backend reads them. */
  boolean isNanChecked() {
    return nanCheck != null;
  }

  @Override
  public void checkInputs(Operation op, Backend backend) throws Exception {
    NanCheck check = nanCheck;
    if (check != null) {
      check.require(op, backend);
    }
  }

  @Override
  public void countPath(String path) {
    paths.add(path);
  }

  @Override
  public void recordEnd(GroupOperation op, WorkState state) {
    runner.events.end(op, state);
  }

  /** Returns the last operations of this rank. */
  FlightRecord.Part flightRecord() {
    return flightRecord(Integer.MAX_VALUE);
  }

  /** Returns the last operations of this rank, up to a maximum number. */
  FlightRecord.Part flightRecord(int most) {
    return recorder.toPart(
        identity, runner.sequence(), pending.running(), backendNames, most, failures.toMap());
  }

  @Override
  public long checkDeadlines(long nowNanos) {
    long next = pending.checkDeadlines(nowNanos);
    long tick = nowNanos + failures.tick();
    return tick - next < 0 ? tick : next;
  }

  // Failure

  /** Fails the group outside of any operation, because of a peer if one is named. */
  void peerFailed(Throwable cause, int failedRank) {
    Blame blame = Blame.ofPeer(cause, failedRank, identity.rank());
    long sequence = blame.kind() == Kind.MISMATCH ? runner.sequence() : 0;
    String text = OperationState.textOf(cause);
    begin(blame.kind(), blame.rank(), OpType.UNKNOWN, sequence, Duration.ZERO, text);
  }

  @Override
  public void abort(String reason) {
    abort(OpType.UNKNOWN, reason);
  }

  /** Fails the group so that its members change; may be called from any thread, never blocks. */
  void revoke(String reason) {
    begin(Kind.REVOKED, -1, OpType.UNKNOWN, runner.sequence(), Duration.ZERO, reason);
  }

  private void abort(OpType op, String text) {
    begin(Kind.ABORTED, identity.rank(), op, runner.sequence(), Duration.ZERO, text);
  }

  /** Begins to fail the group; may be called from any thread, and never blocks. */
  void begin(Kind kind, int failedRank, OpType op, long sequence, Duration elapsed, String text) {
    failures.begin(
        new FailureEvent(
            identity.name(), kind, identity.rank(), failedRank, op, sequence, elapsed, text));
  }

  @Override
  public void tearDown(TuttiException cause) {
    synchronized (backendsLock) {
      if (!backendsClosed) {
        for (BoundBackend bound : backends.values()) {
          guarded("abort", () -> bound.backend().abort(cause));
        }
      }
    }
    runner.endQueued();
    pending.endUnattended();
    listeners.failed(cause);
    tell("failed", String.valueOf(cause.getMessage()));
  }

  @Override
  public @Nullable Runnable recorder() {
    return records.isDumpAsked() ? this::dumpWhatFailed : null;
  }

  /**
   * Writes the flight record, including the end of the collective that failed unless a backend
   * still holds it.
   */
  private void dumpWhatFailed() {
    boolean _ = runner.queue.awaitFree(time.deadline(FAILING));
    records.dumpIfAsked();
  }

  private void tell(String state, String why) {
    Events.get().group(identity.name(), identity.rank(), identity.size(), backendNames, state, why);
  }

  void endIfFailed(GroupOperation op) {
    if (failures.verdict() != null) {
      endFailed(op);
    }
  }

  @Override
  public void endFailed(GroupOperation op) {
    AgreedFailure verdict = failures.verdict();
    if (verdict != null) {
      TuttiException cause =
          verdict.exception(failures.describe(op, verdict), failures.ownCause(op, op.reported()));
      op.endFailed(stateFor(cause), cause);
    } else if (life == Life.CLOSED) {
      endClosed(op);
    }
  }

  void endClosed(GroupOperation op) {
    op.endFailed(
        WorkState.ABORTED,
        new AbortedException(
            op.type().label() + " failed: the group is closed", op.describe(-1, -1), null));
  }

  static WorkState stateFor(TuttiException cause) {
    if (cause instanceof CollectiveTimeoutException) {
      return WorkState.TIMED_OUT;
    }
    return cause instanceof AbortedException ? WorkState.ABORTED : WorkState.FAILED;
  }

  /** Returns the ranks to which this one cannot connect; the others wait for the answer. */
  List<Integer> unreached() {
    Duration limit = monitor.times().answer().dividedBy(2);
    return BoundBackend.distinct(backends.values()).stream()
        .flatMap(backend -> backend.unreachedPeers(limit).stream())
        .distinct()
        .toList();
  }

  @Override
  public RankProgress answer(FailureEvent event) {
    if (event.kind() == Kind.MISMATCH) {
      standing.awaitCall(event, time.deadline(monitor.times().call()));
    }
    return standing.withPlace(false).without(unreached());
  }

  /** Publishes that this rank closes the group without a failure, and where it stands. */
  private void publishClose() {
    try {
      RankProgress progress = standing.progress(true);
      BoundedCalls.run(
          time,
          "tutti-ask-" + identity.globalRanks().get(identity.rank()),
          monitor.times().answer(),
          () -> monitor.board().publish(identity.name(), progress.encode()));
    } catch (Exception e) {
      unpublished = true;
      LOG.log(
          Level.DEBUG,
          "rank {0}, group {1}: cannot publish its progress: {2}",
          identity.rank(),
          identity.name(),
          e);
    }
  }

  // Rest

  /** Throws if the group is closed, closing, failed or failing. */
  void ensureUsable(OpType type) {
    ensureOpen(type);
    failures.refuseIfFailing(type);
  }

  /** Throws if the group is closed or closing. */
  void ensureOpen(OpType type) {
    if (life != Life.OPEN) {
      throw closed(type);
    }
  }

  GroupClosedException closed(OpType type) {
    return new GroupClosedException(
        "%s refused: group %s is closed on rank %d"
            .formatted(type.label(), identity.name(), identity.rank()));
  }

  /** Returns whether the store took what this rank last said about itself. */
  boolean isClosePublished() {
    return !unpublished;
  }

  /** Returns whether close was called. */
  boolean isClosed() {
    return life != Life.OPEN;
  }

  @Override
  public boolean isGone() {
    return life == Life.CLOSED;
  }

  @Override
  public long timeoutNanos() {
    return timeoutNanos;
  }

  /** Returns how long an operation may take from its issue. */
  long timeoutNanos(OperationSpec spec) {
    return spec.timeoutNanos(timeoutNanos);
  }

  Duration timeout() {
    return Duration.ofNanos(timeoutNanos);
  }

  void setTimeout(Duration timeout) {
    timeoutNanos = Deadlines.nanos(timeout);
  }

  private void guarded(String what, Runnable call) {
    try {
      call.run();
    } catch (RuntimeException | LinkageError e) {
      LOG.log(Level.WARNING, identity.logPrefix() + what + " of a backend failed", e);
    }
  }

  /** Closes this group, and gives operations the time of the setting to end. */
  boolean close() {
    return close(closeLimit());
  }

  /** Returns when operations that are still pending fail if the group is closed now. */
  long closeLimit() {
    return time.deadline(identity.settings().get(RuntimeSettings.CLOSE_TIMEOUT));
  }

  /**
   * Closes this group.
   *
   * @param limitNanos when operations that are still pending fail
   * @return whether this call closed it; false if another thread has done so or is closing it
   */
  boolean close(long limitNanos) {
    synchronized (this) {
      if (life != Life.OPEN) {
        return false;
      }
      life = Life.CLOSING;
    }
    boolean failed = failures.isFailing();
    if (failed || !runner.stopWhenIdle(limitNanos)) {
      String text = "the group was closed with operations pending" + pending.summary();
      if (!failed) {
        LOG.log(Level.WARNING, identity.logPrefix() + text + ", which fail");
      }
      abort(OpType.CLOSE, text);
      failures.await();
      runner.stop(time.nanoTime() + SETTLE_NANOS);
    } else if (identity.size() > 1) {
      publishClose();
    }
    watchdog.unwatch(this);
    monitor.leave(identity.name());
    life = Life.CLOSED;
    pending.endAll();
    failures.close();
    closeBackends();
    listeners.close();
    records.close(this);
    tell("closed", "");
    if (identity.isOfAllRanks()
        && identity.settings().get(RuntimeSettings.FLIGHT_RECORD_ON_CLOSE)) {
      records.dumpIfAsked();
    }
    return true;
  }

  private void closeBackends() {
    synchronized (backendsLock) {
      backendsClosed = true;
    }
    for (Backend backend : BoundBackend.distinct(backends.values())) {
      guarded("close", backend::close);
    }
  }
}
