package dev.tutti.runtime.operation;

import dev.tutti.WaitInterruptedException;
import dev.tutti.WorkState;
import dev.tutti.spi.Backend;
import dev.tutti.spi.Time;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Comparator;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;

/** Holds the operations of a group that have not ended, and watches their deadlines. */
public final class PendingOperations {
  /*
   * An operation is added after it was issued, so that a thread that finds it here finds its
   * deadline; then the watchdog is set to expect that deadline.
   *
   * The operation that the group reuses for calls on their callers' threads is always here, and
   * pending while its state says so. It may be reissued while the watchdog looks at it, so what the
   * watchdog found counts only if the number is still the same after it has read the state. As long
   * as that operation is not timed, its wait counts from when the watchdog first saw it.
   *
   * An operation that a thread executes gets a longer grace period: its backend keeps the deadline
   * itself and can say better what is missing.
   */
  private static final long GRACE_NANOS = TimeUnit.MILLISECONDS.toNanos(50);
  private static final long BACKEND_GRACE_NANOS = TimeUnit.MILLISECONDS.toNanos(500);
  private static final long STUCK_NANOS = TimeUnit.SECONDS.toNanos(10);
  private static final int SHOWN = 3;
  private static final long POLL_NANOS = TimeUnit.MILLISECONDS.toNanos(10);

  private final OperationOwner owner;
  private final Time time;
  private final Collection<Backend> backends;
  private final OrderedSet<GroupOperation> operations = new OrderedSet<>();
  private final SlowOperations slow;
  private long seenNumber;
  private long seenNanos;

  /** The operation that the group reuses for synchronous calls on their callers' threads. */
  public final GroupOperation inline;

  /** The stream-ordered collectives whose callers got no work. */
  public final StreamOperations onStream;

  /**
   * Creates an empty set of operations.
   *
   * @param slowNanos how long an operation waits before its owner is notified; 0 means never
   */
  public PendingOperations(OperationOwner owner, Collection<Backend> backends, long slowNanos) {
    this.owner = owner;
    this.time = owner.identity().time();
    this.backends = backends;
    this.slow = new SlowOperations(slowNanos, owner::slow, time);
    this.inline = new GroupOperation(owner, false);
    this.onStream = new StreamOperations(owner);
  }

  /** Adds an issued operation. */
  public void add(GroupOperation op) {
    operations.add(op);
    owner.watchdog().expect(op.deadlineNanos());
  }

  public void remove(GroupOperation op) {
    operations.remove(op);
  }

  /** Returns the collective that runs on its caller's thread, if there is one. */
  @Nullable
  public GroupOperation running() {
    return inline.currentState() == WorkState.RUNNING ? inline : null;
  }

  /**
   * Lists the operations that have not ended: first a collective that runs on its caller's thread,
   * then the rest.
   */
  public List<RankProgress.Pending> describe() {
    List<RankProgress.Pending> all = new ArrayList<>();
    GroupOperation running = running();
    if (running != null) {
      all.add(describe(running));
    }
    pending().forEach(op -> all.add(describe(op)));
    return all;
  }

  /**
   * Names the first operation that has not ended, to be appended to a text; empty if all have
   * ended.
   */
  public String summary() {
    List<RankProgress.Pending> all = describe();
    if (all.isEmpty()) {
      return "";
    }
    String first =
        all.stream()
            .sorted(Comparator.comparingLong(RankProgress.Pending::sequence))
            .limit(SHOWN)
            .map(RankProgress.Pending::describe)
            .collect(Collectors.joining("; "));
    int more = all.size() - SHOWN;
    return ": " + first + (more > 0 ? " and " + more + " more" : "");
  }

  /** Returns the operations that have not ended, except for the inline one. */
  private List<GroupOperation> pending() {
    List<GroupOperation> all = new ArrayList<>(onStream.pending());
    all.addAll(operations.copy());
    return all;
  }

  /**
   * An operation that has not ended.
   *
   * @param op the operation
   * @param nanos how long it has waited, as far as that is known
   */
  public record Wait(RankProgress.Pending op, long nanos) {}

  /** Lists the operations that have not ended and how long each has waited, longest first. */
  public List<Wait> waits() {
    List<Wait> all = new ArrayList<>();
    long now = time.nanoTime();
    GroupOperation running = running();
    if (running != null) {
      all.add(new Wait(describe(running), now - sinceOfInline(now)));
    }
    for (GroupOperation op : pending()) {
      long issued = op.issuedNanos();
      all.add(new Wait(describe(op), issued == 0 ? 0 : now - issued));
    }
    all.sort(Comparator.comparingLong(Wait::nanos).reversed());
    return all;
  }

  /** Returns when the inline collective started, or when it was first seen if it is not timed. */
  private synchronized long sinceOfInline(long nowNanos) {
    long issued = inline.issuedNanos();
    if (issued != 0) {
      return issued;
    }
    return seenNumber == inline.sequenceNumber() ? seenNanos : nowNanos;
  }

  private static RankProgress.Pending describe(GroupOperation op) {
    return new RankProgress.Pending(op.type(), op.sequenceNumber(), op.peer(), op.tag());
  }

  /**
   * Ends the messages and the operations that a device works on; an operation that a thread
   * executes is ended by its backend.
   */
  public void endUnattended() {
    for (GroupOperation op : pending()) {
      if (op.type().isPointToPoint() || op.deviceEvent() != null) {
        owner.endFailed(op);
      }
    }
  }

  /** Ends all operations. */
  public void endAll() {
    pending().forEach(owner::endFailed);
  }

  /** Waits until all have ended; false if the deadline or an interrupt comes first. */
  public boolean await(long deadlineNanos) {
    for (GroupOperation op : pending()) {
      try {
        if (!op.awaitUntil(deadlineNanos, true)) {
          return false;
        }
      } catch (WaitInterruptedException e) {
        return false;
      }
    }
    return true;
  }

  /**
   * Notes which operations the devices have completed.
   *
   * @param waitNanos how long to wait for a thread that is doing so already
   */
  public void look(long waitNanos) {
    for (GroupOperation op : operations.copy()) {
      if (op.deviceEvent() != null) {
        op.pollDevice();
      }
    }
    onStream.reclaim(waitNanos);
  }

  /**
   * Fails overdue operations.
   *
   * @param nowNanos the time, in terms of the group's clock
   * @return when to look again
   */
  public long checkDeadlines(long nowNanos) {
    long next = nowNanos + Math.min(Watchdog.PERIOD_NANOS, owner.timeoutNanos());
    look(0);
    for (GroupOperation op : operations.copy()) {
      if (op.deviceEvent() != null) {
        next = earlier(next, nowNanos + op.pollNanos(nowNanos));
      }
      next = check(op, nowNanos, next);
    }
    for (GroupOperation op : onStream.pending()) {
      next = check(op, nowNanos, earlier(next, nowNanos + POLL_NANOS));
    }
    next = checkInline(nowNanos, next);
    long slowAt =
        slow.check(waitingInline(), List.of(operations.copy(), onStream.pending()), nowNanos);
    return earlier(slowAt, next);
  }

  /** Returns the earlier of two times of a clock, which may be negative. */
  private static long earlier(long one, long other) {
    return one - other < 0 ? one : other;
  }

  private synchronized SlowOperations.@Nullable Waiting waitingInline() {
    return seenNumber == 0 ? null : new SlowOperations.Waiting(inline, seenNumber, seenNanos);
  }

  private synchronized long checkInline(long nowNanos, long next) {
    long number = inline.sequenceNumber();
    if (inline.currentState() != WorkState.RUNNING) {
      seenNumber = 0;
      return next;
    }
    if (number != seenNumber) {
      seenNumber = number;
      seenNanos = nowNanos;
    }
    long known = inline.knownDeadlineNanos();
    long deadline = known == 0 ? seenNanos + owner.timeoutNanos() : known;
    if (inline.sequenceNumber() != number || inline.knownDeadlineNanos() != known) {
      return next;
    }
    return checkLimit(inline, deadline + BACKEND_GRACE_NANOS, nowNanos, next);
  }

  private long check(GroupOperation op, long nowNanos, long next) {
    WorkState state = op.currentState();
    if (state.isFinal()) {
      return next;
    }
    boolean executed =
        state == WorkState.RUNNING && !op.type().isPointToPoint() && op.deviceEvent() == null;
    return checkLimit(
        op, op.deadlineNanos() + (executed ? BACKEND_GRACE_NANOS : GRACE_NANOS), nowNanos, next);
  }

  private long checkLimit(GroupOperation op, long limit, long nowNanos, long next) {
    if (nowNanos - limit < 0) {
      return earlier(limit, next);
    }
    owner.operationFailed(op, new TimeoutException(timeoutText(op)), -1);
    if (nowNanos - limit > STUCK_NANOS) {
      owner.endFailed(op);
    }
    return next;
  }

  private String timeoutText(GroupOperation op) {
    StringBuilder text = new StringBuilder("the operation did not complete in time");
    for (Backend backend : backends) {
      String cause = backend.likelyCause(op);
      text.append(cause.isEmpty() ? "" : "; ").append(cause);
    }
    return text.toString();
  }
}
