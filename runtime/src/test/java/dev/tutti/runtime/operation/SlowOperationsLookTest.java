package dev.tutti.runtime.operation;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.CallOptions;
import dev.tutti.OpType;
import dev.tutti.ProcessGroup;
import dev.tutti.ReduceOp;
import dev.tutti.Tensor;
import dev.tutti.WorkState;
import dev.tutti.runtime.group.ScriptedProvider;
import dev.tutti.spi.Time;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;

/** Tests when a slow operation is reported, using made-up times. */
class SlowOperationsLookTest {
  private static final long AFTER = 800;

  private final List<Long> told = new ArrayList<>();

  /** Later than the creation of what is tested, however long that takes. */
  private final long start = System.nanoTime() + TimeUnit.HOURS.toNanos(1);

  private GroupOperation operation() {
    ScriptedProvider provider = new ScriptedProvider();
    try (ProcessGroup group = provider.alone()) {
      return (GroupOperation) group.allReduce(Tensor.of(1f), ReduceOp.SUM, CallOptions.ASYNC);
    }
  }

  private SlowOperations slow(long after) {
    return new SlowOperations(
        after, (op, sequence, elapsed, others) -> told.add(elapsed), Time.SYSTEM);
  }

  private void look(SlowOperations slow, GroupOperation op, long until) {
    for (long at = 0; at <= until; at++) {
      long now = start + at;
      long _ = slow.check(new SlowOperations.Waiting(op, 1, start), List.of(), now);
    }
  }

  @Test
  void thePausesDouble() {
    look(slow(AFTER), operation(), 15_000);
    assertThat(told).hasSize(5);
    assertThat(told.get(0)).isBetween(AFTER, AFTER + 2 * AFTER / 8);
    for (int i = 1; i < told.size(); i++) {
      long before = told.get(i - 1);
      assertThat(told.get(i)).isBetween(2 * before, 2 * before + AFTER / 8);
    }
  }

  @Test
  void zeroTellsNothing() {
    look(slow(0), operation(), 15_000);
    assertThat(told).isEmpty();
  }

  @Test
  void whatIsQueuedWaitsForAnother() {
    GroupOperation op = operation();
    op.issue(2, start, start + 1_000_000, WorkState.QUEUED);
    assertThat(op.type()).isEqualTo(OpType.ALL_REDUCE);
    SlowOperations slow = slow(AFTER);
    for (long at = 0; at < 5000; at++) {
      long _ = slow.check(null, List.of(List.of(op)), start + at);
    }
    assertThat(told).isEmpty();
  }
}
