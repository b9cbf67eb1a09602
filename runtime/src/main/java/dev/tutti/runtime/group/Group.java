package dev.tutti.runtime.group;

import dev.tutti.AbortedException;
import dev.tutti.CollectiveTimeoutException;
import dev.tutti.FailureInfo;
import dev.tutti.GroupClosedException;
import dev.tutti.OpType;
import dev.tutti.Settings;
import dev.tutti.TuttiException;
import dev.tutti.WorkState;
import dev.tutti.runtime.failure.AgreedFailure;
import dev.tutti.runtime.failure.Blame;
import dev.tutti.runtime.failure.BoundedCalls;
import dev.tutti.runtime.failure.FailureEvent;
import dev.tutti.runtime.failure.FailureEvent.Kind;
import dev.tutti.runtime.failure.Failures;
import dev.tutti.runtime.failure.JobMonitor;
import dev.tutti.runtime.operation.BoundBackend;
import dev.tutti.runtime.operation.Deadlines;
import dev.tutti.runtime.operation.FlightRecorder;
import dev.tutti.runtime.operation.GroupOperation;
import dev.tutti.runtime.operation.Listeners;
import dev.tutti.runtime.operation.OperationState;
import dev.tutti.runtime.operation.PathCounts;
import dev.tutti.runtime.operation.PendingOperations;
import dev.tutti.runtime.operation.Watchdog;
import dev.tutti.runtime.settings.RuntimeSettings;
import dev.tutti.spi.Backend;
import java.lang.System.Logger.Level;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import org.jspecify.annotations.Nullable;

/** Is one rank of a group: what it knows, its failure and its end. */
public final class Group {
  private static final System.Logger LOG = System.getLogger(Group.class.getName());
  private static final long SETTLE_NANOS = TimeUnit.SECONDS.toNanos(4);

  private static final Duration PUBLISH = Duration.ofSeconds(1);

  private enum Life {
    OPEN,
    CLOSING,
    CLOSED
  }

  public final String name;
  public final int rank;
  public final int size;
  public final List<Integer> globalRanks;
  final Settings settings;
  public final JobMonitor monitor;
  public final Map<String, BoundBackend> backends;
  public final FlightRecorder recorder;
  final Listeners listeners;
  public final Failures failures;
  public final PendingOperations pending;
  public final OperationRunner runner;

  /** Counts the collectives by path. */
  final PathCounts paths = new PathCounts();

  /** Counts the barriers that name who does not come, on all ranks alike. */
  final AtomicLong monitoredBarriers = new AtomicLong();

  private final Object backendsLock = new Object();
  private boolean backendsClosed;
  private volatile long timeoutNanos;
  private volatile Life life = Life.OPEN;
  private volatile @Nullable Refusal refusal;

  /** Is in what this rank waits for others to make a group with it, for reports; or empty. */
  volatile String joining = "";

  /**
   * Is why a call was refused.
   *
   * @param text of the exception
   * @param issued how many operations were issued before
   */
  private record Refusal(String text, long issued) {}

  public Group(
      String name,
      int rank,
      List<Integer> globalRanks,
      Settings settings,
      Duration timeout,
      JobMonitor monitor,
      Map<String, BoundBackend> backends) {
    this.name = name;
    this.rank = rank;
    this.size = globalRanks.size();
    this.globalRanks = globalRanks;
    this.settings = settings;
    this.timeoutNanos = Deadlines.nanos(timeout);
    this.monitor = monitor;
    this.backends = backends;
    this.recorder = new FlightRecorder(settings.get(RuntimeSettings.FLIGHT_RECORD));
    this.listeners = new Listeners(name, rank);
    this.failures = new Failures(this);
    this.pending = new PendingOperations(this);
    this.runner = new OperationRunner(this);
  }

  void start() {
    Watchdog.watch(pending);
    monitor.join(name, globalRanks, failures::onEvent);
  }

  // Failure

  /** Fails the group outside any operation, because of a peer if one is named. */
  void peerFailed(Throwable cause, int failedRank) {
    Blame blame = Blame.ofPeer(cause, failedRank, rank);
    long sequence = blame.kind() == Kind.MISMATCH ? runner.sequence() : 0;
    begin(blame.kind(), blame.rank(), OpType.UNKNOWN, sequence, Failures.textOf(cause));
  }

  public void abort(String reason) {
    begin(Kind.ABORTED, rank, OpType.UNKNOWN, runner.sequence(), reason);
  }

  private void begin(Kind kind, int failedRank, OpType op, long sequence, String text) {
    failures.begin(
        new FailureEvent(name, kind, rank, failedRank, op, sequence, Duration.ZERO, text));
  }

  /** Ends everything, after the failure was settled; does not block. */
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
  }

  void endIfFailed(GroupOperation op) {
    if (failures.verdict() != null) {
      endFailed(op);
    }
  }

  /** Ends an operation with what the ranks agreed on, or as closed. */
  public void endFailed(GroupOperation op) {
    AgreedFailure verdict = failures.verdict();
    if (verdict != null) {
      TuttiException cause =
          verdict.exception(describe(op, verdict), failures.ownCause(op, op.reported()));
      op.endFailed(stateFor(cause), cause);
    } else if (life == Life.CLOSED) {
      endClosed(op);
    }
  }

  void endClosed(GroupOperation op) {
    op.endFailed(
        WorkState.ABORTED,
        new AbortedException(
            op.type().label() + " failed: the group is closed", describe(op, -1, -1), null));
  }

  static WorkState stateFor(TuttiException cause) {
    if (cause instanceof CollectiveTimeoutException) {
      return WorkState.TIMED_OUT;
    }
    return cause instanceof AbortedException ? WorkState.ABORTED : WorkState.FAILED;
  }

  public FailureInfo describe(OperationState op, int peer, int failedRank) {
    return FailureInfo.builder(name, rank, size)
        .operation(op.type(), op.sequenceNumber())
        .peer(peer)
        .failedRank(failedRank)
        .elapsed(op.duration())
        .build();
  }

  public FailureInfo describe(OperationState op, AgreedFailure verdict) {
    int blamed = verdict.event().failedRank();
    int peer = op.peer() >= 0 || blamed == rank ? op.peer() : blamed;
    return describe(op, peer, verdict.failedRank());
  }

  /** Lets the other ranks know where this one stands; takes a second at most. */
  public void publishProgress(boolean closed) {
    try {
      String progress = runner.progress(closed).encode();
      BoundedCalls.call(
          "tutti-tell-" + name + "-" + rank,
          PUBLISH,
          () -> {
            monitor.publishProgress(name, progress);
            return progress;
          });
    } catch (Exception e) {
      LOG.log(Level.DEBUG, "rank {0}, group {1}: cannot tell its progress: {2}", rank, name, e);
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

  /** Notes that a call was refused, with which nothing was sent. */
  void refused(String text) {
    refusal = new Refusal(text, runner.issued());
  }

  /** Returns why the last call was refused; empty if it was not. */
  String lastRefusal() {
    Refusal last = refusal;
    return last == null || last.issued != runner.issued() ? "" : last.text;
  }

  GroupClosedException closed(OpType type) {
    return new GroupClosedException(
        type.label() + " refused: group " + name + " is closed on rank " + rank);
  }

  /** Tells whether close was called. */
  boolean isClosed() {
    return life != Life.OPEN;
  }

  /** Tells whether close is through. */
  public boolean isGone() {
    return life == Life.CLOSED;
  }

  public long timeoutNanos() {
    return timeoutNanos;
  }

  Duration timeout() {
    return Duration.ofNanos(timeoutNanos);
  }

  void setTimeout(Duration timeout) {
    timeoutNanos = Deadlines.nanos(timeout);
  }

  public void runCallback(Runnable callback) {
    Thread.ofVirtual().name("tutti-future").start(callback);
  }

  private void guarded(String what, Runnable call) {
    try {
      call.run();
    } catch (RuntimeException | LinkageError e) {
      LOG.log(Level.WARNING, "rank " + rank + ", group " + name + ": " + what + " of a backend", e);
    }
  }

  /** Closes this group; false if somebody else did or does. */
  public boolean close() {
    synchronized (this) {
      if (life != Life.OPEN) {
        return false;
      }
      life = Life.CLOSING;
    }
    long limit = Deadlines.in(settings.get(RuntimeSettings.CLOSE_TIMEOUT));
    boolean failed = failures.isFailing();
    if (failed || !runner.stopWhenIdle(limit)) {
      String text = "the group was closed with operations pending" + pending.summary();
      if (!failed) {
        LOG.log(Level.WARNING, "rank " + rank + ", group " + name + ": " + text + ", which fail");
      }
      begin(Kind.ABORTED, rank, OpType.CLOSE, runner.sequence(), text);
      failures.await();
      runner.stop(System.nanoTime() + SETTLE_NANOS);
    } else if (size > 1) {
      publishProgress(true);
    }
    Watchdog.unwatch(pending);
    monitor.leave(name);
    life = Life.CLOSED;
    pending.endAll();
    failures.close();
    closeBackends();
    listeners.close();
    return true;
  }

  private void closeBackends() {
    synchronized (backendsLock) {
      backendsClosed = true;
    }
    for (Backend backend : Job.distinct(backends.values())) {
      guarded("close", backend::close);
    }
  }
}
