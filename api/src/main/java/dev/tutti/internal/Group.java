package dev.tutti.internal;

import dev.tutti.AbortedException;
import dev.tutti.CollectiveException;
import dev.tutti.CollectiveTimeoutException;
import dev.tutti.CommListener;
import dev.tutti.DType;
import dev.tutti.FailureInfo;
import dev.tutti.GroupClosedException;
import dev.tutti.OpType;
import dev.tutti.PeerFailedException;
import dev.tutti.Settings;
import dev.tutti.StreamBlock;
import dev.tutti.TuttiException;
import dev.tutti.WorkState;
import dev.tutti.internal.FailureEvent.Kind;
import dev.tutti.spi.Backend;
import dev.tutti.spi.PeerLostException;
import dev.tutti.spi.StreamBlockProvider;
import java.lang.System.Logger.Level;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicLong;
import org.jspecify.annotations.Nullable;

/** Runs the operations of one rank of a group: order, deadlines, failures, records, end. */
final class Group implements Watchdog.Watched {
  /*
   * Life of a failure. Whatever fails first on this rank calls beginFailure(), once. A thread of its
   * own tells the job monitor and learns the first failure of all ranks, which the monitor hands to
   * onEvent(), once per group, on whichever thread. onEvent() starts the teardown: it settles
   * "failure", aborts the backends and ends what is pending. An operation that a thread is executing
   * ends only when the backend returned, so that nobody touches its tensors after its work ended;
   * that thread waits for "settled" to learn what to throw.
   */
  private static final System.Logger LOG = System.getLogger(Group.class.getName());
  private static final long GRACE_NANOS = TimeUnit.MILLISECONDS.toNanos(50);
  private static final long SETTLE_NANOS = TimeUnit.SECONDS.toNanos(4);
  private static final long STUCK_NANOS = TimeUnit.SECONDS.toNanos(10);
  private static final long LEDGER_NANOS = TimeUnit.SECONDS.toNanos(1);

  private enum Life {
    OPEN,
    CLOSING,
    CLOSED
  }

  final String name;
  final int rank;
  final int size;
  final List<Integer> globalRanks;
  final Settings settings;
  final JobMonitor monitor;
  final Map<String, BoundBackend> backends;
  final FlightRecorder recorder;
  private final Lane lane;
  private final GroupOperation inlineOp = new GroupOperation(this, OpType.UNKNOWN);
  private volatile boolean inlineActive;
  private final Set<GroupOperation> pending = ConcurrentHashMap.newKeySet();
  private final AtomicLong p2pSequence = new AtomicLong();
  private final AtomicLong eventIds = new AtomicLong();
  private final AtomicLong completed = new AtomicLong();
  private final CopyOnWriteArrayList<CommListener> listeners = new CopyOnWriteArrayList<>();
  private final SerialCallbacks listenerCalls;
  private final AtomicBoolean failing = new AtomicBoolean();
  private final CountDownLatch settled = new CountDownLatch(1);
  private volatile @Nullable Verdict failure;
  private volatile long timeoutNanos;
  private volatile Life life = Life.OPEN;

  /** Is what the ranks agree on after a failure. */
  private record Verdict(FailureEvent event, int failedRank, String text) {}

  Group(
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
    this.timeoutNanos = timeout.toNanos();
    this.monitor = monitor;
    this.backends = backends;
    this.recorder = new FlightRecorder(settings.get(RuntimeSettings.FLIGHT_RECORD));
    this.lane = new Lane("tutti-w-" + name + "-" + rank, this::runQueued);
    this.listenerCalls = new SerialCallbacks("tutti-cb-" + name + "-" + rank);
    inlineOp.markReusable();
  }

  void start() {
    Watchdog.watch(this);
    monitor.join(name, this::onEvent);
  }

  // Issue

  /** Begins a synchronous collective on the caller's thread; null if it has to queue. */
  @Nullable GroupOperation beginInline(OpType type, @Nullable DType dtype, long numel) {
    ensureUsable(type);
    if (!listeners.isEmpty()) {
      return null;
    }
    long sequence = lane.tryEnter();
    if (sequence == 0) {
      return null;
    }
    long now = System.nanoTime();
    GroupOperation op = inlineOp;
    op.issue(type, sequence, now, deadline(now, timeoutNanos));
    op.flightPlace = recorder.issue(type, sequence, dtype, numel, -1, now);
    inlineActive = true;
    Watchdog.expect(op.deadlineNanos());
    return op;
  }

  /** Ends what {@link #beginInline} began. */
  void endInline(GroupOperation op) {
    op.complete();
    recorder.end(op.flightPlace, WorkState.COMPLETED, System.nanoTime());
    completed.incrementAndGet();
    inlineActive = false;
    lane.exit();
  }

  /** Ends what {@link #beginInline} began, and returns what to throw. */
  RuntimeException failInline(GroupOperation op, Throwable cause) {
    try {
      return failureOf(op, cause);
    } finally {
      recorder.end(op.flightPlace, WorkState.FAILED, System.nanoTime());
      inlineActive = false;
      lane.exit();
    }
  }

  /** Issues an operation; when it returns a synchronous one is done. */
  GroupOperation submit(OperationSpec spec) {
    ensureUsable(spec.type());
    GroupOperation op = new GroupOperation(this, spec.type());
    Backend backend = spec.backend().backend();
    op.backend = backend;
    op.call = spec.call();
    op.prepare(spec.results(), spec.finisher());
    if (spec.type().isPointToPoint()) {
      issue(op, spec, p2pSequence.incrementAndGet());
      op.expectSource(spec.type() == OpType.RECV ? spec.root() : -1);
      pending.add(op);
      start(op, backend);
      if (!spec.async()) {
        op.await();
      }
      return op;
    }
    if (spec.backend().isStreamOrdered()) {
      runStreamOrdered(op, spec);
      return op;
    }
    long sequence = spec.async() ? 0 : lane.tryEnter();
    if (sequence != 0) {
      issue(op, spec, sequence);
      pending.add(op);
      try {
        execute(op);
      } finally {
        lane.exit();
      }
    } else {
      pending.add(op);
      boolean queued =
          lane.enqueue(
              op,
              number -> {
                issue(op, spec, number);
                op.setQueued();
              });
      if (!queued) {
        pending.remove(op);
        throw closed(spec.type());
      }
      if (failure != null) {
        failQueued();
      }
    }
    if (!spec.async()) {
      op.await();
    }
    return op;
  }

  private void runStreamOrdered(GroupOperation op, OperationSpec spec) {
    long now = System.nanoTime();
    long sequence = lane.enter(deadline(now, spec.timeoutNanos(timeoutNanos)));
    if (sequence == 0) {
      throw new AbortedException(
          "another thread's operation did not leave in time", describe(op, -1, -1), null);
    }
    try {
      issue(op, spec, sequence);
      pending.add(op);
      execute(op);
    } finally {
      lane.exit();
    }
    op.throwIfFailed();
  }

  private void issue(GroupOperation op, OperationSpec spec, long sequence) {
    long now = System.nanoTime();
    op.issue(spec.type(), sequence, now, deadline(now, spec.timeoutNanos(timeoutNanos)));
    op.flightPlace =
        recorder.issue(spec.type(), sequence, spec.dtype(), spec.numel(), spec.root(), now);
    if (!listeners.isEmpty()) {
      CommListener.OpEvent event =
          new CommListener.OpEvent(
              eventIds.incrementAndGet(),
              name,
              rank,
              spec.type(),
              sequence,
              spec.async(),
              spec.root(),
              spec.inputs(),
              spec.results());
      op.event = event;
      for (CommListener listener : listeners) {
        guarded(() -> listener.before(event));
      }
    }
    Watchdog.expect(op.deadlineNanos());
  }

  private void start(GroupOperation op, Backend backend) {
    GroupOperation.BackendCall call = op.call;
    if (call == null) {
      throw new AssertionError("an operation without a call");
    }
    try {
      call.run(backend, op);
    } catch (UnsupportedOperationException e) {
      op.endFailed(
          WorkState.FAILED, new CollectiveException("not supported", describe(op, -1, -1), e));
      throw e;
    } catch (Throwable t) {
      operationFailed(op, t, blame(t));
      return;
    }
    if (failure != null) {
      endPending(op);
    }
  }

  private void runQueued(GroupOperation op) {
    if (op.run()) {
      execute(op);
    }
  }

  /** Runs a collective on this thread and ends it. */
  private void execute(GroupOperation op) {
    GroupOperation.BackendCall call = op.call;
    Backend backend = op.backend;
    if (call == null || backend == null) {
      throw new AssertionError("an operation without a call");
    }
    try {
      if (failure != null) {
        throw new AbortedException("the group failed before", describe(op, -1, -1), null);
      }
      call.run(backend, op);
      if (!op.isOnDevice()) {
        op.complete();
      }
    } catch (UnsupportedOperationException e) {
      op.endFailed(
          WorkState.FAILED, new CollectiveException("not supported", describe(op, -1, -1), e));
    } catch (Throwable t) {
      TuttiException cause = failureOf(op, t);
      op.endFailed(stateFor(cause), cause);
      if (t instanceof Error error && !(t instanceof LinkageError)) {
        throw error;
      }
    }
  }

  void operationEnded(GroupOperation op, WorkState state, @Nullable TuttiException cause) {
    pending.remove(op);
    if (state == WorkState.COMPLETED && !op.type().isPointToPoint()) {
      completed.incrementAndGet();
    }
    recorder.end(op.flightPlace, state, System.nanoTime());
    CommListener.OpEvent event = op.event;
    if (event == null) {
      return;
    }
    Duration duration = op.duration();
    Runnable call =
        () -> {
          for (CommListener listener : listeners) {
            guarded(() -> listener.after(event, state, duration, cause));
          }
        };
    if (event.async() || op.type().isPointToPoint()) {
      listenerCalls.add(call);
    } else {
      call.run();
    }
  }

  // Failure

  /** Fails the group because of an operation; from any thread, never blocks. */
  void operationFailed(GroupOperation op, Throwable cause, int failedRank) {
    Kind kind =
        cause instanceof TimeoutException
            ? Kind.TIMEOUT
            : cause instanceof PeerLostException ? Kind.PEER_LOST : Kind.FAILED;
    int blamed = kind == Kind.FAILED && failedRank < 0 ? rank : failedRank;
    beginFailure(
        new FailureEvent(name, kind, rank, blamed, op.type(), op.sequenceNumber(), textOf(cause)));
  }

  /** Fails the group because of a peer, outside any operation. */
  void peerFailed(Throwable cause, int failedRank) {
    beginFailure(
        new FailureEvent(name, Kind.PEER_LOST, rank, failedRank, OpType.UNKNOWN, 0, textOf(cause)));
  }

  void abort(String reason) {
    beginFailure(
        new FailureEvent(name, Kind.ABORTED, rank, rank, OpType.UNKNOWN, lane.sequence(), reason));
  }

  private void beginFailure(FailureEvent event) {
    if (life == Life.CLOSED || !failing.compareAndSet(false, true)) {
      return;
    }
    Thread.ofPlatform()
        .daemon()
        .name("tutti-fail-" + name + "-" + rank)
        .start(() -> monitor.report(event));
  }

  private void onEvent(FailureEvent event) {
    failing.set(true);
    if (life == Life.CLOSED) {
      settled.countDown();
      return;
    }
    Thread.ofPlatform()
        .daemon()
        .name("tutti-fail-" + name + "-" + rank)
        .start(() -> tearDown(event));
  }

  private void tearDown(FailureEvent event) {
    int failedRank = event.failedRank();
    String text = event.message();
    try {
      if (event.kind() == Kind.TIMEOUT) {
        monitor.publishProgress(name, lane.sequence() + " " + completed.get());
        Ledger ledger = Ledger.gather(this, event, System.nanoTime() + LEDGER_NANOS);
        failedRank = failedRank >= 0 ? failedRank : ledger.firstMissing();
        text = text + ledger.text();
      }
    } finally {
      Verdict verdict = new Verdict(event, failedRank, text);
      failure = verdict;
      LOG.log(
          Level.DEBUG, "rank {0}, group {1}: failed: {2}", rank, name, describeVerdict(verdict));
      TuttiException cause = failureOf(inlineOp.type(), 0, inlineOp, verdict, null);
      for (BoundBackend bound : backends.values()) {
        guarded(() -> bound.backend().abort(cause));
      }
      settled.countDown();
      failQueued();
      for (GroupOperation op : pending) {
        if (op.type().isPointToPoint() || op.isOnDevice()) {
          endPending(op);
        }
      }
      if (!listeners.isEmpty()) {
        listenerCalls.add(
            () -> {
              for (CommListener listener : listeners) {
                guarded(() -> listener.aborted(cause));
              }
            });
      }
    }
  }

  private void failQueued() {
    for (GroupOperation op : lane.drain()) {
      endPending(op);
    }
  }

  private void endPending(GroupOperation op) {
    Verdict verdict = failure;
    if (verdict != null) {
      TuttiException cause = failureOf(op.type(), op.sequenceNumber(), op, verdict, null);
      op.endFailed(stateFor(cause), cause);
    }
  }

  private TuttiException failureOf(GroupOperation op, Throwable cause) {
    operationFailed(op, cause, blame(cause));
    Verdict verdict = awaitVerdict();
    if (verdict == null) {
      if (cause instanceof TimeoutException) {
        return new CollectiveTimeoutException(textOf(cause), describe(op, -1, -1), cause);
      }
      return new CollectiveException(
          textOf(cause), describe(op, blame(cause), blame(cause)), cause);
    }
    Throwable below = cause instanceof CollectiveException ? null : cause;
    TuttiException failed = failureOf(op.type(), op.sequenceNumber(), op, verdict, below);
    if (!(failed instanceof CollectiveTimeoutException) && cause instanceof TimeoutException) {
      return new CollectiveTimeoutException(
          textOf(cause) + "; " + describeVerdict(verdict),
          describe(op, -1, verdict.failedRank()),
          cause);
    }
    return failed;
  }

  private TuttiException failureOf(
      OpType type, long sequence, GroupOperation op, Verdict verdict, @Nullable Throwable cause) {
    FailureEvent event = verdict.event();
    FailureInfo info = describe(op, event.failedRank(), verdict.failedRank());
    String text = type.label() + " failed: " + describeVerdict(verdict);
    boolean same = event.op() == type && event.sequence() == sequence;
    return switch (event.kind()) {
      case TIMEOUT ->
          same
              ? new CollectiveTimeoutException(text, info, cause)
              : new PeerFailedException(text, info, cause);
      case PEER_LOST -> new PeerFailedException(text, info, cause);
      case FAILED ->
          event.reporter() == rank
              ? new CollectiveException(text, info, cause)
              : new PeerFailedException(text, info, cause);
      case ABORTED ->
          event.reporter() == rank
              ? new AbortedException(text, info, cause)
              : new PeerFailedException(text, info, cause);
    };
  }

  private String describeVerdict(Verdict verdict) {
    FailureEvent event = verdict.event();
    String who = event.reporter() == rank ? "this rank" : "rank " + event.reporter();
    String where =
        event.op() == OpType.UNKNOWN ? "" : " in " + event.op().label() + " #" + event.sequence();
    return switch (event.kind()) {
      case TIMEOUT -> who + " timed out" + where + ": " + verdict.text();
      case PEER_LOST ->
          "rank "
              + verdict.failedRank()
              + " is gone, as "
              + who
              + " saw"
              + where
              + ": "
              + verdict.text();
      case FAILED -> who + " failed" + where + ": " + verdict.text();
      case ABORTED -> who + " aborted the group: " + verdict.text();
    };
  }

  private @Nullable Verdict awaitVerdict() {
    boolean interrupted = false;
    long limit = System.nanoTime() + SETTLE_NANOS;
    try {
      while (true) {
        try {
          settled.await(Math.max(0, limit - System.nanoTime()), TimeUnit.NANOSECONDS);
          return failure;
        } catch (InterruptedException e) {
          interrupted = true;
        }
      }
    } finally {
      if (interrupted) {
        Thread.currentThread().interrupt();
      }
    }
  }

  private static WorkState stateFor(TuttiException cause) {
    if (cause instanceof CollectiveTimeoutException) {
      return WorkState.TIMED_OUT;
    }
    return cause instanceof AbortedException ? WorkState.ABORTED : WorkState.FAILED;
  }

  private static int blame(Throwable cause) {
    return cause instanceof PeerLostException lost ? lost.peer() : -1;
  }

  private static String textOf(Throwable cause) {
    String message = cause.getMessage();
    if (cause instanceof TuttiException || cause instanceof TimeoutException) {
      return message == null ? cause.getClass().getSimpleName() : message;
    }
    return cause.toString();
  }

  FailureInfo describe(GroupOperation op, int peer, int failedRank) {
    return new FailureInfo(
        name, rank, size, op.type(), op.sequenceNumber(), peer, failedRank, op.duration());
  }

  @Nullable TuttiException failure() {
    Verdict verdict = failure;
    return verdict == null
        ? null
        : failureOf(verdict.event().op(), verdict.event().sequence(), inlineOp, verdict, null);
  }

  // Deadlines

  @Override
  public long checkDeadlines(long nowNanos) {
    long next = nowNanos + Watchdog.PERIOD_NANOS;
    for (GroupOperation op : pending) {
      next = check(op, nowNanos, next);
      if (op.isOnDevice()) {
        op.pollDevice();
        next = Math.min(next, nowNanos + TimeUnit.MILLISECONDS.toNanos(10));
      }
    }
    if (inlineActive) {
      next = check(inlineOp, nowNanos, next);
    }
    return next;
  }

  private long check(GroupOperation op, long nowNanos, long next) {
    long limit = op.deadlineNanos() + GRACE_NANOS;
    if (op.isDone() || op.issuedNanos() == 0) {
      return next;
    }
    if (nowNanos - limit < 0) {
      return limit - next < 0 ? limit : next;
    }
    operationFailed(op, new TimeoutException("the operation did not end in time"), -1);
    if (nowNanos - limit > STUCK_NANOS) {
      endPending(op);
    }
    return next;
  }

  private static long deadline(long nowNanos, long timeout) {
    return nowNanos + Math.min(timeout, Long.MAX_VALUE / 4);
  }

  // Rest

  void ensureUsable(OpType type) {
    if (life != Life.OPEN) {
      throw closed(type);
    }
    Verdict verdict = failing.get() ? awaitVerdict() : null;
    if (verdict != null) {
      FailureInfo info =
          new FailureInfo(name, rank, size, type, 0, -1, verdict.failedRank(), Duration.ZERO);
      String text = type.label() + " refused, the group failed before: " + describeVerdict(verdict);
      throw verdict.event().kind() == Kind.ABORTED && verdict.event().reporter() == rank
          ? new AbortedException(text, info, null)
          : new PeerFailedException(text, info, null);
    }
  }

  private GroupClosedException closed(OpType type) {
    return new GroupClosedException(
        type.label() + " refused: group " + name + " is closed on rank " + rank);
  }

  boolean isClosed() {
    return life != Life.OPEN;
  }

  long timeoutNanos() {
    return timeoutNanos;
  }

  void setTimeoutNanos(long nanos) {
    timeoutNanos = nanos;
  }

  long sequence() {
    return lane.sequence();
  }

  AutoCloseable addListener(CommListener listener) {
    listeners.add(listener);
    return () -> listeners.remove(listener);
  }

  void runCallback(Runnable callback) {
    Thread.ofVirtual().name("tutti-future").start(callback);
  }

  StreamBlock blockStream() {
    for (StreamBlockProvider provider : Providers.streamBlocks().values()) {
      if (!provider.deviceType().equals("cpu")) {
        return provider.block(Duration.ZERO);
      }
    }
    throw new UnsupportedOperationException("no stream block provider on the class path");
  }

  private void guarded(Runnable call) {
    try {
      call.run();
    } catch (RuntimeException | LinkageError e) {
      LOG.log(Level.WARNING, "rank " + rank + ", group " + name + ": a callback failed", e);
    }
  }

  /** Closes this group; false if somebody else did or does. */
  boolean close() {
    synchronized (this) {
      if (life != Life.OPEN) {
        return false;
      }
      life = Life.CLOSING;
    }
    long limit = System.nanoTime() + settings.get(RuntimeSettings.CLOSE_TIMEOUT).toNanos();
    boolean idle = failure == null && lane.awaitIdle(limit) && awaitPending(limit);
    if (!idle && failure == null) {
      beginFailure(
          new FailureEvent(
              name,
              Kind.ABORTED,
              rank,
              rank,
              OpType.CLOSE,
              lane.sequence(),
              "the group was closed with operations pending"));
      awaitVerdict();
    }
    if (failure != null) {
      failQueued();
      lane.awaitIdle(System.nanoTime() + SETTLE_NANOS);
      pending.forEach(this::endPending);
    }
    lane.stop();
    Watchdog.unwatch(this);
    monitor.leave(name);
    life = Life.CLOSED;
    settled.countDown();
    for (BoundBackend bound : backends.values()) {
      guarded(bound.backend()::close);
    }
    listenerCalls.close();
    return true;
  }

  private boolean awaitPending(long limitNanos) {
    for (GroupOperation op : pending) {
      Backend backend = op.backend;
      if (backend == null
          || !(op.type().isPointToPoint()
              ? backend.await(op, limitNanos)
              : op.parkUntilDone(limitNanos))) {
        return false;
      }
    }
    return true;
  }
}
