package dev.tutti.runtime.operation;

import dev.tutti.AbortedException;
import dev.tutti.FailureInfo;
import dev.tutti.OpType;
import dev.tutti.Settings;
import dev.tutti.TuttiException;
import dev.tutti.WorkState;
import dev.tutti.runtime.failure.JobMonitor;
import dev.tutti.runtime.group.Group;
import dev.tutti.spi.Call;
import dev.tutti.store.HashStore;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicInteger;

/** Is the state machine of a group's operations, and counts how often it ends. */
final class RacedOperation extends OperationState {
  /** Is closed, so that a failure is not told to other ranks, which would take threads. */
  static final Group CLOSED = closedGroup();

  static final TuttiException CAUSE =
      new AbortedException(
          "raced",
          FailureInfo.builder("raced", 0, 1).operation(OpType.ALL_REDUCE, 1).build(),
          null);

  final AtomicInteger ends = new AtomicInteger();

  RacedOperation(Runnable finisher) {
    super(CLOSED, new Call(OpType.ALL_REDUCE), List.of(), finisher);
    issue(1, 0, Long.MAX_VALUE, WorkState.RUNNING);
  }

  @Override
  void afterEnd(WorkState newState, TuttiException cause) {
    ends.incrementAndGet();
  }

  /** Returns number of ends, final state and whether the cause belongs to it. */
  String verdict() {
    boolean fits = (currentState() == WorkState.COMPLETED) == (failure() == null);
    return ends.get() + " " + currentState() + (fits ? "" : " but cause " + failure());
  }

  private static Group closedGroup() {
    Group group =
        new Group(
            "raced",
            0,
            List.of(0),
            Settings.ofEnvironment(Map.of()),
            Duration.ofSeconds(30),
            new JobMonitor(new HashStore(), "raced", 0, -1),
            Map.of());
    group.close();
    return group;
  }
}
