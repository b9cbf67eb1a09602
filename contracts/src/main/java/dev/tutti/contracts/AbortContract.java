package dev.tutti.contracts;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.AbortedException;
import dev.tutti.CallOptions;
import dev.tutti.CollectiveException;
import dev.tutti.OpType;
import dev.tutti.PeerFailedException;
import dev.tutti.ReduceOp;
import dev.tutti.Work;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;

/**
 * Tests of abort: it releases every waiter on every rank, and reports which rank gave up and why.
 */
public interface AbortContract extends GroupContract {
  /** Releases the ranks that wait for the one that aborts. */
  @ContractTest(needs = OpType.ALL_REDUCE, movesData = true, minSize = 2)
  default void abortFreesTheOtherRanks(ContractWorld world) throws Exception {
    int quitter = world.size() - 1;
    CountDownLatch waiting = new CountDownLatch(quitter);
    world.run(
        member -> {
          if (member.rank() == quitter) {
            Waiting.open(waiting);
            long start = System.nanoTime();
            member.group().abort("out of patience");
            assertThat(Duration.ofNanos(System.nanoTime() - start))
                .as("time of a call that never blocks")
                .isLessThan(CaughtFailures.SLACK);
          } else {
            Work work =
                member.group().allReduce(member.floats(1).view(), ReduceOp.SUM, CallOptions.ASYNC);
            assertThat(work.await(Duration.ofMillis(5))).isFalse();
            waiting.countDown();
            CollectiveException failure = CaughtFailures.expect(member, Waiting.LONG, work::await);
            assertThat(failure).isInstanceOf(PeerFailedException.class);
            assertThat(failure.failedRank()).hasValue(quitter);
            assertThat(failure)
                .hasMessageContaining("out of patience")
                .hasMessageContaining("rank " + quitter);
          }
          CaughtFailures.assertFailed(member, quitter);
        });
  }

  /** Releases all ranks long before their deadline, measured from the abort to the last failure. */
  @ContractTest(needs = OpType.BARRIER, movesData = true, minSize = 2)
  default void abortFreesTheOthersLongBeforeTheirDeadline(ContractWorld world) throws Exception {
    CountDownLatch started = new CountDownLatch(world.size() - 1);
    CountDownLatch freed = new CountDownLatch(world.size() - 1);
    world.run(
        member -> {
          if (member.rank() != 0) {
            Work work = member.group().barrier(CallOptions.ASYNC);
            assertThat(work.await(Duration.ofMillis(5))).isFalse();
            started.countDown();
            CaughtFailures.expect(member, Waiting.LONG, work::await);
            freed.countDown();
          } else {
            Waiting.open(started);
            member.group().abort("enough");
            assertThat(freed.await(CaughtFailures.SLACK.toMillis(), TimeUnit.MILLISECONDS))
                .as("all ranks free within " + CaughtFailures.SLACK)
                .isTrue();
          }
        });
  }

  /** Releases the aborting rank's own waiters, which wait on other threads. */
  @ContractTest(needs = OpType.ALL_REDUCE, movesData = true, minSize = 2)
  default void abortFreesTheOwnWaiters(ContractWorld world) throws Exception {
    CountDownLatch ended = new CountDownLatch(1);
    world.run(
        member -> {
          if (member.rank() != 0) {
            Waiting.open(ended);
            return;
          }
          ExecutorService thread = Executors.newSingleThreadExecutor();
          try {
            List<Work> works = pendingWorks(member);
            Future<?> aborter =
                thread.submit(
                    () -> {
                      member.group().abort("changed my mind");
                      member.group().abort("again");
                    });
            for (Work work : works) {
              CollectiveException failure =
                  CaughtFailures.expect(member, CaughtFailures.SLACK, work::await);
              assertThat(failure)
                  .isInstanceOf(AbortedException.class)
                  .hasMessageContaining("changed my mind");
              assertThat(work.isCompleted()).isTrue();
              assertThat(work.isSuccess()).isFalse();
              assertThat(work.exception()).contains(failure);
              assertThat(endOf(work)).as("what the future completes with").isSameAs(failure);
            }
            aborter.get(1, TimeUnit.MINUTES);
            CaughtFailures.assertFailed(member, 0);
          } finally {
            thread.shutdownNow();
            ended.countDown();
          }
        });
  }

  /** Returns the error that a work's future passes to its dependent actions. */
  private static Throwable endOf(Work work) throws Exception {
    return work.toCompletableFuture().handle((tensors, error) -> error).get(1, TimeUnit.MINUTES);
  }

  /** Releases a synchronous call by an abort from another thread of the same rank. */
  @ContractTest(needs = OpType.ALL_REDUCE, movesData = true, minSize = 2)
  default void abortFreesASynchronousCall(ContractWorld world) throws Exception {
    CountDownLatch ended = new CountDownLatch(1);
    world.run(
        member -> {
          if (member.rank() != 0) {
            Waiting.open(ended);
            return;
          }
          CountDownLatch calling = new CountDownLatch(1);
          ExecutorService thread = Executors.newSingleThreadExecutor();
          try {
            Future<?> aborter =
                thread.submit(
                    () -> {
                      Waiting.open(calling);
                      member.group().abort("freed by another thread");
                      return null;
                    });
            CollectiveException failure =
                CaughtFailures.expect(
                    member,
                    Waiting.LONG,
                    () -> {
                      calling.countDown();
                      member
                          .group()
                          .allReduce(member.floats(1).view(), ReduceOp.SUM, CallOptions.DEFAULT)
                          .await();
                    });
            assertThat(failure)
                .isInstanceOf(AbortedException.class)
                .hasMessageContaining("freed by another thread");
            aborter.get(1, TimeUnit.MINUTES);
          } finally {
            thread.shutdownNow();
            ended.countDown();
          }
        });
  }

  /** Releases a call, made by rank 0 only, of each operation that the backend declares. */
  @ContractTest(movesData = true, blocking = true, minSize = 2, maxSize = 8, once = true)
  default void abortFreesEveryOperation(ContractWorld world) throws Exception {
    world.run(
        member -> {
          List<LoneCall> lone = LoneCall.ofEach(member);
          try (Calls calls = new Calls()) {
            List<Future<?>> freed = new ArrayList<>();
            for (LoneCall each : member.rank() == 0 ? lone : List.<LoneCall>of()) {
              freed.add(calls.run(() -> checkFreed(each)));
              Waiting.until("the call of " + each.op(), each::isMade);
            }
            for (int i = 0; i < freed.size(); i++) {
              lone.get(i).group().abort("enough of " + lone.get(i).op());
            }
            long start = System.nanoTime();
            for (Future<?> each : freed) {
              Calls.ended(each);
            }
            assertThat(Duration.ofNanos(System.nanoTime() - start))
                .as("time until all calls were free")
                .isLessThan(CaughtFailures.SOON);
            member.meet();
          }
        });
  }

  private static void checkFreed(LoneCall lone) {
    CollectiveException failure = CaughtFailures.expect(lone.member(), Waiting.LONG, lone.call());
    assertThat(failure)
        .isInstanceOf(AbortedException.class)
        .hasMessageContaining("enough of " + lone.op());
    assertThat(failure.opType()).isEqualTo(lone.op());
  }

  /** Fails the group when one of its works is aborted. */
  @ContractTest(needs = OpType.ALL_REDUCE, movesData = true, minSize = 2)
  default void abortingAWorkEndsTheGroup(ContractWorld world) throws Exception {
    world.run(
        member -> {
          if (member.rank() == 0) {
            List<Work> works = pendingWorks(member);
            works.get(0).abort();
            for (Work work : works) {
              CaughtFailures.expect(member, CaughtFailures.SLACK, work::await);
            }
          }
          CaughtFailures.assertFailed(member, 0);
        });
  }

  /** Refuses later operations of a group that was aborted while idle, but still closes it. */
  @ContractTest
  default void abortOfAnIdleGroupRefusesWhatFollows(ContractWorld world) throws Exception {
    world.run(
        member -> {
          if (member.rank() == 0) {
            member.group().abort("not needed");
          }
          Waiting.until("the failure", () -> member.group().failure().isPresent());
          CollectiveException failure =
              CaughtFailures.expect(member, CaughtFailures.SLACK, member::collective);
          assertThat(failure).hasMessageContaining("not needed");
          assertThat(failure.failedRank()).hasValue(0);
          member.group().close();
          assertThat(member.group().isClosed()).isTrue();
        });
  }

  private static List<Work> pendingWorks(Member member) {
    List<Work> works = new ArrayList<>();
    for (int i = 0; i < 3; i++) {
      works.add(member.group().allReduce(member.floats(1).view(), ReduceOp.SUM, CallOptions.ASYNC));
    }
    if (member.capabilities().has(OpType.RECV)) {
      works.add(member.group().recv(member.floats(1).view(), member.next(), 0, CallOptions.ASYNC));
    }
    return works;
  }
}
