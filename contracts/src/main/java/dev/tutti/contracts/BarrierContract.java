package dev.tutti.contracts;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import dev.tutti.CallOptions;
import dev.tutti.CollectiveException;
import dev.tutti.CollectiveTimeoutException;
import dev.tutti.MissingRanks;
import dev.tutti.OpType;
import dev.tutti.Work;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicIntegerArray;

/**
 * Tests of barriers: no rank leaves before all have come, and the monitored barrier names those
 * that did not come.
 */
public interface BarrierContract extends GroupContract {
  /** Counts arrivals: a rank that leaves sees all of them. */
  @ContractTest(needs = OpType.BARRIER, movesData = true)
  default void barrierHoldsUntilAllCame(ContractWorld world) throws Exception {
    int rounds = 50;
    AtomicIntegerArray arrived = new AtomicIntegerArray(rounds);
    world.run(
        member -> {
          for (int round = 0; round < rounds; round++) {
            arrived.incrementAndGet(round);
            member.group().barrier();
            assertThat(arrived.get(round))
                .as("arrivals at barrier " + round)
                .isEqualTo(world.size());
          }
        });
  }

  /** Starts barriers asynchronously: none completes before the last rank has come. */
  @ContractTest(needs = OpType.BARRIER, movesData = true, minSize = 2)
  default void asynchronousBarrierCompletesWhenAllCame(ContractWorld world) throws Exception {
    CountDownLatch seen = new CountDownLatch(world.size() - 1);
    world.run(
        member -> {
          boolean late = member.rank() == member.size() - 1;
          if (late) {
            Waiting.open(seen);
          }
          Work work = member.group().barrier(CallOptions.ASYNC);
          if (!late) {
            assertThat(work.await(Duration.ofMillis(20))).isFalse();
            assertThat(work.isCompleted()).isFalse();
            seen.countDown();
          }
          work.await();
          assertThat(work.isSuccess()).isTrue();
        });
  }

  /** Lets all ranks pass when all come, on every backend. */
  @ContractTest
  default void monitoredBarrierPassesWhenAllCome(ContractWorld world) throws Exception {
    world.run(
        member -> {
          for (MissingRanks named : MissingRanks.values()) {
            member.group().monitoredBarrier(Waiting.LONG, named);
          }
          member.assertUsable();
        });
  }

  /** Names all missing ranks when asked to wait for all, and otherwise the first. */
  @ContractTest(movesData = true, minSize = 3)
  default void monitoredBarrierNamesTheMissingRanks(ContractWorld world) throws Exception {
    for (MissingRanks named : MissingRanks.values()) {
      JointCall.run(
          world,
          rank -> rank < world.size() - 2,
          member -> assertMissingNamed(member, named, TimeoutContract.SHORT),
          member -> {});
    }
  }

  private static void assertMissingNamed(Member member, MissingRanks named, Duration timeout) {
    int first = member.size() - 2;
    long start = System.nanoTime();
    CollectiveException failure =
        catchThrowableOfType(
            CollectiveException.class, () -> member.group().monitoredBarrier(timeout, named));
    assertThat(failure)
        .as("failure on rank %d", member.rank())
        .isInstanceOf(CollectiveTimeoutException.class);
    assertThat(Duration.ofNanos(System.nanoTime() - start))
        .isLessThan(timeout.plus(CaughtFailures.SLACK));
    assertThat(failure.opType()).isEqualTo(OpType.MONITORED_BARRIER);
    assertThat(failure.failedRank()).as("first failing rank in: %s", failure).hasValue(first);
    if (member.rank() == 0 && named == MissingRanks.ALL) {
      // On a busy machine the watchdog may notice the end of the time before the backend does.
      assertThat(failure.getMessage())
          .containsPattern(
              "ranks %1$d, %2$d|rank %1$d has not called it.*rank %2$d has not called it"
                  .formatted(first, first + 1));
      assertThat(missing(failure)).startsWith(first, first + 1);
    } else if (member.rank() == 0) {
      assertThat(failure).hasMessageContaining("rank " + first);
      assertThat(missing(failure)).startsWith(first);
    }
  }

  private static List<Integer> missing(CollectiveException failure) {
    return ((CollectiveTimeoutException) failure).missingRanks();
  }

  /** Fails all ranks when rank 0 does not come. */
  @ContractTest(movesData = true, minSize = 2)
  default void monitoredBarrierFailsWithoutRankZero(ContractWorld world) throws Exception {
    JointCall.run(
        world,
        rank -> rank > 0,
        member -> assertRankZeroNamed(member, TimeoutContract.SHORT),
        member -> {});
  }

  private static void assertRankZeroNamed(Member member, Duration timeout) {
    CollectiveException failure =
        CaughtFailures.expect(
            member,
            timeout.plus(CaughtFailures.SOON),
            () -> member.group().monitoredBarrier(timeout, MissingRanks.FIRST));
    assertThat(failure)
        .isInstanceOf(CollectiveTimeoutException.class)
        .hasMessageContaining("rank 0");
    assertThat(failure.opType()).isEqualTo(OpType.MONITORED_BARRIER);
    assertThat(failure.failedRank()).as("first failing rank in: %s", failure).hasValue(0);
  }
}
