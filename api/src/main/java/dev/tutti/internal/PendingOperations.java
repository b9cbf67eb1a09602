package dev.tutti.internal;

import dev.tutti.AbortedException;
import dev.tutti.WorkState;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.jspecify.annotations.Nullable;

/** Holds the operations of a group that have not ended, and watches their deadlines. */
final class PendingOperations implements Watchdog.Watched {
  /*
   * An operation is added after it was issued, so that who finds it here finds its deadline; then the
   * watchdog is told to expect that deadline. The reused inline operation may be issued anew while the
   * watchdog looks at it; a deadline counts only if it is still the same after the look at the state.
   *
   * An operation that a thread executes gets more grace: its backend keeps the deadline itself and
   * knows better what is missing.
   */
  private static final long GRACE_NANOS = TimeUnit.MILLISECONDS.toNanos(50);
  private static final long BACKEND_GRACE_NANOS = TimeUnit.MILLISECONDS.toNanos(500);
  private static final long STUCK_NANOS = TimeUnit.SECONDS.toNanos(10);
  private static final long POLL_NANOS = TimeUnit.MILLISECONDS.toNanos(10);

  private final Group group;
  private final Set<GroupOperation> operations = ConcurrentHashMap.newKeySet();
  private volatile @Nullable GroupOperation inline;

  PendingOperations(Group group) {
    this.group = group;
  }

  /** Adds an issued operation. */
  void add(GroupOperation op) {
    operations.add(op);
    Watchdog.expect(op.deadlineNanos());
  }

  void remove(GroupOperation op) {
    operations.remove(op);
  }

  /** Adds the issued operation that the group reuses; allocates nothing. */
  void enterInline(GroupOperation op) {
    inline = op;
    Watchdog.expect(op.deadlineNanos());
  }

  void exitInline() {
    inline = null;
  }

  /**
   * Lists what has not ended: first a collective that runs on its caller's thread, then the rest.
   */
  List<Progress.Pending> describe() {
    List<Progress.Pending> all = new ArrayList<>();
    GroupOperation running = inline;
    if (running != null) {
      all.add(describe(running));
    }
    operations.forEach(op -> all.add(describe(op)));
    return all;
  }

  private static Progress.Pending describe(GroupOperation op) {
    return new Progress.Pending(op.type(), op.sequenceNumber(), op.peer(), op.tag());
  }

  /** Ends the messages and what a device works on; what a thread executes ends by its backend. */
  void endUnattended() {
    for (GroupOperation op : operations) {
      if (op.type().isPointToPoint() || op.deviceEvent() != null) {
        group.endFailed(op);
      }
    }
  }

  /** Ends all. */
  void endAll() {
    operations.forEach(group::endFailed);
  }

  /** Waits until all have ended; false when the deadline or an interrupt comes first. */
  boolean await(long deadlineNanos) {
    for (GroupOperation op : operations) {
      try {
        if (!op.awaitUntil(deadlineNanos)) {
          return false;
        }
      } catch (AbortedException e) {
        return false;
      }
    }
    return true;
  }

  @Override
  public long checkDeadlines(long nowNanos) {
    long next = nowNanos + Watchdog.PERIOD_NANOS;
    for (GroupOperation op : operations) {
      if (op.deviceEvent() != null) {
        op.pollDevice();
        next = Math.min(next, nowNanos + POLL_NANOS);
      }
      next = check(op, nowNanos, next);
    }
    GroupOperation running = inline;
    if (running != null) {
      next = check(running, nowNanos, next);
    }
    group.failures.checkOverdue(nowNanos);
    return next;
  }

  private long check(GroupOperation op, long nowNanos, long next) {
    long deadline = op.deadlineNanos();
    WorkState state = op.currentState();
    if (state.isFinal() || op.deadlineNanos() != deadline) {
      return next;
    }
    boolean executed =
        state == WorkState.RUNNING && !op.type().isPointToPoint() && op.deviceEvent() == null;
    long limit = deadline + (executed ? BACKEND_GRACE_NANOS : GRACE_NANOS);
    if (nowNanos - limit < 0) {
      return limit - next < 0 ? limit : next;
    }
    group.failures.operationFailed(
        op, new TimeoutException("the operation did not end in time"), -1);
    if (nowNanos - limit > STUCK_NANOS) {
      group.endFailed(op);
    }
    return next;
  }
}
