package dev.tutti.contracts;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.CallOptions;
import dev.tutti.CollectiveException;
import dev.tutti.CollectiveTimeoutException;
import dev.tutti.OpType;
import dev.tutti.ReduceOp;
import dev.tutti.Work;
import dev.tutti.WorkState;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicLong;

/**
 * Tests of deadlines: an operation that a rank does not join fails on all others at its deadline,
 * says so, and fails the group.
 */
public interface TimeoutContract extends GroupContract {
  /** The deadline that the tests exceed. */
  Duration SHORT = Duration.ofSeconds(1);

  /** Fails a synchronous all-reduce with a deadline of its own. */
  @ContractTest(needs = OpType.ALL_REDUCE, movesData = true, minSize = 2)
  default void allReduceFailsAtItsDeadline(ContractWorld world) throws Exception {
    checkAbsence(
        world,
        (member, timeout) ->
            member
                .group()
                .allReduce(member.floats(1).view(), ReduceOp.SUM, CallOptions.timeout(timeout))
                .await());
  }

  /** Fails a call without options at the group's deadline. */
  @ContractTest(needs = OpType.ALL_REDUCE, movesData = true, minSize = 2)
  default void theGroupsDeadlineHoldsWhereNoneIsGiven(ContractWorld world) throws Exception {
    checkAbsence(
        world,
        (member, timeout) -> {
          member.group().setTimeout(timeout);
          member
              .group()
              .allReduce(member.floats(1).view(), ReduceOp.SUM, CallOptions.DEFAULT)
              .await();
        });
  }

  /** Fails an asynchronous all-reduce even though its waiter would wait longer. */
  @ContractTest(needs = OpType.ALL_REDUCE, movesData = true, minSize = 2)
  default void anAsynchronousWorkFailsAtItsDeadline(ContractWorld world) throws Exception {
    checkAbsence(
        world,
        (member, timeout) -> {
          Work work =
              member
                  .group()
                  .allReduce(
                      member.floats(1).view(),
                      ReduceOp.SUM,
                      CallOptions.timeout(timeout).withAsync());
          Waiting.until("the end of the work", work::isCompleted);
          assertThat(work.state()).isEqualTo(WorkState.TIMED_OUT);
          assertThat(work.isSuccess()).isFalse();
          assertThat(work.exception()).containsInstanceOf(CollectiveTimeoutException.class);
          assertThat(work.toCompletableFuture())
              .failsWithin(CaughtFailures.SLACK)
              .withThrowableThat()
              .havingCause()
              .isInstanceOf(CollectiveTimeoutException.class);
          work.await(Waiting.LONG);
        });
  }

  /** Fails a broadcast at its deadline on the ranks that need the absent root. */
  @ContractTest(needs = OpType.BROADCAST, movesData = true, minSize = 2)
  default void broadcastFailsAtItsDeadline(ContractWorld world) throws Exception {
    checkAbsence(
        world,
        (member, timeout) ->
            member
                .group()
                .broadcast(member.floats(1).view(), member.size() - 1, CallOptions.timeout(timeout))
                .await());
  }

  /** Fails a barrier at its deadline. */
  @ContractTest(needs = OpType.BARRIER, movesData = true, minSize = 2)
  default void barrierFailsAtItsDeadline(ContractWorld world) throws Exception {
    checkAbsence(world, (member, timeout) -> member.group().barrier(CallOptions.timeout(timeout)));
  }

  /** Fails a receive that is never sent to at its deadline, and with it the group on all ranks. */
  @ContractTest(needs = OpType.RECV, movesData = true, minSize = 2)
  default void recvFailsAtItsDeadline(ContractWorld world) throws Exception {
    world.run(
        member -> {
          if (member.rank() == 0) {
            CollectiveException failure =
                CaughtFailures.expect(
                    member,
                    SHORT.plus(CaughtFailures.SLACK),
                    () ->
                        member
                            .group()
                            .recv(member.floats(0).view(), 1, 0, CallOptions.timeout(SHORT)));
            assertThat(failure).isInstanceOf(CollectiveTimeoutException.class);
            assertThat(failure.opType()).isEqualTo(OpType.RECV);
            assertThat(failure.elapsed()).isGreaterThanOrEqualTo(SHORT);
          }
          Waiting.until("the failure", () -> member.group().failure().isPresent());
          CaughtFailures.expect(member, CaughtFailures.SLACK, member::collective);
        });
  }

  /** Fails, at its deadline, each operation that the backend declares and only rank 0 calls. */
  @ContractTest(movesData = true, blocking = true, minSize = 2, maxSize = 8, once = true)
  default void everyOperationFailsAtItsDeadline(ContractWorld world) throws Exception {
    world.run(
        member -> {
          List<LoneCall> lone = LoneCall.ofEach(member);
          assertThat(lone).isNotEmpty();
          try (Calls calls = new Calls()) {
            List<Future<?>> ended = new ArrayList<>();
            for (LoneCall each : member.rank() == 0 ? lone : List.<LoneCall>of()) {
              each.group().setTimeout(SHORT);
              ended.add(calls.run(() -> checkDeadline(each)));
            }
            for (Future<?> each : ended) {
              Calls.ended(each);
            }
            member.meet();
          }
        });
  }

  private static void checkDeadline(LoneCall lone) {
    CollectiveException failure =
        CaughtFailures.expect(lone.member(), CaughtFailures.SOON, lone.call());
    assertThat(failure).isInstanceOf(CollectiveTimeoutException.class);
    assertThat(failure.opType()).isEqualTo(lone.op());
    assertThat(failure.elapsed()).isGreaterThanOrEqualTo(SHORT);
  }

  /** Completes an operation that ends in time, whatever happened before. */
  @ContractTest(needs = OpType.ALL_REDUCE)
  default void aDeadlineThatIsMetHarmsNobody(ContractWorld world) throws Exception {
    world.run(
        member -> {
          for (int i = 0; i < 20; i++) {
            member
                .group()
                .allReduce(
                    member.floats(1).view(), ReduceOp.SUM, CallOptions.timeout(Waiting.LONG));
          }
          Work work =
              member
                  .group()
                  .allReduce(
                      member.floats(1).view(),
                      ReduceOp.SUM,
                      CallOptions.timeout(Waiting.LONG).withAsync());
          work.await(Duration.ofNanos(1));
          work.await();
          member.assertUsable();
        });
  }

  /** Creates groups and runs collectives with the longest possible timeout. */
  @ContractTest
  default void takesTheLongestTimeout(ContractWorld world) throws Exception {
    world.run(
        options -> options.withTimeout(Waiting.LONGEST),
        member -> {
          assertThat(member.group().timeout()).isGreaterThan(Duration.ofDays(3650));
          member.assertUsable();
          member.in(member.group().split(0, 0).orElseThrow()).assertUsable();
        });
  }

  /** Runs the first collective on all ranks except the last, which stays away. */
  private static void checkAbsence(ContractWorld world, BriefCall call) throws Exception {
    int absent = world.size() - 1;
    AtomicLong longest = new AtomicLong();
    JointCall.run(
        world,
        rank -> rank < absent,
        member -> longest.accumulateAndGet(elapsed(member, SHORT, call), Math::max),
        member -> CaughtFailures.assertFailed(member, absent));
    assertThat(longest.get())
        .as("ms until the first rank's deadline, which ends the operation on all")
        .isGreaterThanOrEqualTo(SHORT.toMillis());
  }

  /** Returns how long a call took that the last rank does not make, in milliseconds. */
  private static long elapsed(Member member, Duration timeout, BriefCall call) {
    CollectiveException failure =
        CaughtFailures.expect(
            member, timeout.plus(CaughtFailures.SLACK), () -> call.run(member, timeout));
    assertThat(failure).isInstanceOf(CollectiveTimeoutException.class);
    assertThat(failure.sequenceNumber()).isEqualTo(1);
    assertThat(failure).hasMessageContaining("#1").hasMessageContaining(" ms");
    assertThat(failure.failedRank())
        .as("rank to blame in: %s", failure)
        .hasValue(member.size() - 1);
    return failure.elapsed().toMillis();
  }
}
