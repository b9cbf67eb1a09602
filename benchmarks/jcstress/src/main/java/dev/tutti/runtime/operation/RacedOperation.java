package dev.tutti.runtime.operation;

import dev.tutti.AbortedException;
import dev.tutti.Capabilities;
import dev.tutti.FailureInfo;
import dev.tutti.GroupListener.OpEvent;
import dev.tutti.OpType;
import dev.tutti.Settings;
import dev.tutti.TuttiException;
import dev.tutti.WorkState;
import dev.tutti.spi.Backend;
import dev.tutti.spi.Call;
import dev.tutti.spi.Operation;
import dev.tutti.spi.Time;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;

/** The state machine of a group's operations, which also counts how often it ends. */
final class RacedOperation extends OperationState {
  /** A closed group, so that failures are not reported to other ranks, which would take threads. */
  static final OperationOwner CLOSED = new Closed();

  static final TuttiException CAUSE =
      new AbortedException(
          "raced",
          FailureInfo.builder("raced", 0, 1).operation(OpType.ALL_REDUCE, 1).build(),
          null);

  private static final Backend IDLE =
      new Backend() {
        @Override
        public void abort(Throwable cause) {}

        @Override
        public void close() {}
      };

  final AtomicInteger ends = new AtomicInteger();

  RacedOperation(Runnable finisher) {
    super(CLOSED, new Call(OpType.ALL_REDUCE), List.of(), finisher);
    issue(1, 0, Long.MAX_VALUE, WorkState.RUNNING);
  }

  /** Returns an issued operation as users get it, of a backend that does nothing. */
  static GroupOperation ofBackend(OperationOwner owner, Call call) {
    Capabilities capabilities = Capabilities.builder().build();
    BoundBackend bound = new BoundBackend("raced", "cpu", IDLE, capabilities, Map.of(), true);
    GroupOperation op =
        new GroupOperation(
            owner, new OperationSpec(call, bound, new HostStaging(bound, call, 0), null, true));
    long now = System.nanoTime();
    op.issue(1, now, now + owner.timeoutNanos(), WorkState.RUNNING);
    return op;
  }

  @Override
  void afterEnd(WorkState newState, TuttiException cause) {
    ends.incrementAndGet();
  }

  /** Returns the number of ends, the final state, and whether the cause belongs to it. */
  String verdict() {
    boolean fits = (currentState() == WorkState.COMPLETED) == (failure() == null);
    return ends.get() + " " + currentState() + (fits ? "" : " but cause " + failure());
  }

  /** A closed group: failures are reported to nobody, and overdue operations end as aborted. */
  static class Closed implements OperationOwner {
    private final GroupIdentity identity =
        new GroupIdentity("raced", 0, List.of(0), Settings.ofEnvironment(Map.of()), Time.SYSTEM);

    @Override
    public GroupIdentity identity() {
      return identity;
    }

    @Override
    public Watchdog watchdog() {
      return Watchdog.of(Time.SYSTEM);
    }

    @Override
    public long timeoutNanos() {
      return TimeUnit.SECONDS.toNanos(30);
    }

    @Override
    public Backend backendOf(String deviceType) {
      return null;
    }

    @Override
    public void operationFailed(OperationState op, Throwable cause, int failedRank) {}

    @Override
    public void endFailed(GroupOperation op) {
      op.endFailed(WorkState.ABORTED, CAUSE);
    }

    @Override
    public void ended(GroupOperation op, WorkState state, TuttiException cause, OpEvent toTell) {}

    @Override
    public void slow(GroupOperation op, long sequence, long elapsedNanos, int others) {}

    @Override
    public void checkInputs(Operation op, Backend backend) {}

    @Override
    public void countPath(String path) {}

    @Override
    public void recordEnd(GroupOperation op, WorkState state) {}

    @Override
    public long checkDeadlines(long nowNanos) {
      return Long.MAX_VALUE;
    }

    @Override
    public void abort(String reason) {}
  }
}
