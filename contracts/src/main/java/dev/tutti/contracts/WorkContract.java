package dev.tutti.contracts;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.tutti.AbortedException;
import dev.tutti.CallOptions;
import dev.tutti.DType;
import dev.tutti.OpType;
import dev.tutti.ReduceOp;
import dev.tutti.Tensor;
import dev.tutti.TuttiException;
import dev.tutti.Work;
import dev.tutti.WorkState;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;

/** Tests of works: their states, waits, futures and numbers, and many works in flight. */
public interface WorkContract extends GroupContract {
  /** Returns a finished work from a synchronous call. */
  @ContractTest(needs = OpType.ALL_REDUCE, blocking = true)
  default void aSynchronousCallReturnsAFinishedWork(ContractWorld world) throws Exception {
    world.run(
        member -> {
          Tensor tensor = member.floats(1).view();
          Work work = member.group().allReduce(tensor, ReduceOp.SUM, CallOptions.DEFAULT);
          assertThat(work.isCompleted()).isTrue();
          assertFinished(work, tensor);
        });
  }

  /** Completes a work even if no one waits for it. */
  @ContractTest(needs = OpType.ALL_REDUCE)
  default void aWorkCompletesByItself(ContractWorld world) throws Exception {
    world.run(
        member -> {
          Tensor tensor = member.floats(1).view();
          Work work = member.startSum(tensor);
          Waiting.until("the end of the work", work::isCompleted);
          assertFinished(work, tensor);
        });
  }

  /** Keeps a work unfinished until the last rank has come; waits with a timeout end without it. */
  @ContractTest(needs = OpType.ALL_REDUCE, movesData = true, minSize = 2)
  default void aWorkWaitsForTheLastRank(ContractWorld world) throws Exception {
    CountDownLatch seen = new CountDownLatch(world.size() - 1);
    world.run(
        member -> {
          boolean late = member.rank() == member.size() - 1;
          if (late) {
            Waiting.open(seen);
          }
          TestTensor tensor = member.floats(member.rank());
          Work work = member.startSum(tensor.view());
          if (!late) {
            assertThat(work.await(Duration.ofMillis(20))).isFalse();
            assertThat(work.await(Duration.ZERO)).isFalse();
            assertThat(work.isCompleted()).isFalse();
            assertThat(work.isSuccess()).isFalse();
            assertThat(work.state()).isIn(WorkState.QUEUED, WorkState.RUNNING);
            assertThat(work.exception()).isEmpty();
            assertThatThrownBy(work::result).isInstanceOf(IllegalStateException.class);
            assertThat(work.toCompletableFuture()).isNotDone();
            seen.countDown();
          }
          assertThat(work.await(Waiting.LONG)).isTrue();
          assertFinished(work, tensor.view());
          tensor.assertValues("result", member.size() * (member.size() - 1) / 2.0);
        });
  }

  /** Completes futures with the result, whether they are asked for early or late. */
  @ContractTest(needs = OpType.ALL_REDUCE)
  default void futuresCompleteWithTheResult(ContractWorld world) throws Exception {
    world.run(
        member -> {
          Tensor tensor = member.floats(1).view();
          Work work = member.startSum(tensor);
          CompletableFuture<List<Tensor>> early = work.toCompletableFuture();
          assertThat(early.get(1, TimeUnit.MINUTES)).containsExactly(tensor);
          assertThat(work.isCompleted()).isTrue();
          assertThat(work.toCompletableFuture().get(1, TimeUnit.MINUTES)).containsExactly(tensor);
        });
  }

  /**
   * Passes the failure, unwrapped, to dependent actions, whether they are added before or after the
   * end.
   */
  @ContractTest(needs = OpType.ALL_REDUCE, movesData = true, minSize = 2)
  default void futuresCompleteWithWhatHappened(ContractWorld world) throws Exception {
    CountDownLatch ended = new CountDownLatch(1);
    world.run(
        member -> {
          if (member.rank() != 0) {
            Waiting.open(ended);
            return;
          }
          try {
            Work work = member.startSum(member.floats(1).view());
            Work batch =
                member
                    .group()
                    .batch()
                    .allReduce(member.floats(1).view(), ReduceOp.SUM)
                    .allReduce(member.floats(1).view(), ReduceOp.SUM)
                    .start();
            CompletableFuture<Throwable> early =
                work.toCompletableFuture().handle((tensors, error) -> error);
            CompletableFuture<Throwable> all =
                batch.toCompletableFuture().handle((tensors, error) -> error);
            work.abort();
            Throwable happened = early.get(1, TimeUnit.MINUTES);
            assertThat(happened).isInstanceOf(AbortedException.class);
            assertThat(work.exception()).containsSame((TuttiException) happened);
            assertThat(all.get(1, TimeUnit.MINUTES)).isSameAs(batch.exception().orElseThrow());
            CompletableFuture<Throwable> late =
                work.toCompletableFuture().handle((tensors, error) -> error);
            assertThat(late.get(1, TimeUnit.MINUTES)).isSameAs(happened);
          } finally {
            ended.countDown();
          }
        });
  }

  /** Cancels the future of one user, but neither the operation nor the futures of others. */
  @ContractTest(needs = OpType.ALL_REDUCE, movesData = true, minSize = 2)
  default void aCancelEndsOneFuture(ContractWorld world) throws Exception {
    CountDownLatch cancelled = new CountDownLatch(world.size() - 1);
    world.run(
        member -> {
          boolean late = member.rank() == member.size() - 1;
          if (late) {
            Waiting.open(cancelled);
          }
          TestTensor tensor = member.floats(1);
          Work work = member.startSum(tensor.view());
          CompletableFuture<List<Tensor>> other = work.toCompletableFuture();
          if (!late) {
            assertThat(work.toCompletableFuture().cancel(true)).isTrue();
            assertThat(work.isCompleted()).isFalse();
            assertThat(other).isNotDone();
            cancelled.countDown();
          }
          assertThat(other.get(1, TimeUnit.MINUTES)).containsExactly(tensor.view());
          tensor.assertValues("result", member.size());
        });
  }

  /** Runs dependent actions on threads that the group does not need, so that they may block. */
  @ContractTest(needs = OpType.ALL_REDUCE)
  default void dependentActionsMayRunCollectives(ContractWorld world) throws Exception {
    world.run(
        member -> {
          TestTensor second = member.floats(1);
          Tensor third = member.floats(1).view();
          CompletableFuture<Void> chain =
              member
                  .startSum(member.floats(1).view())
                  .toCompletableFuture()
                  .thenAccept(done -> member.awaitSum(second.view()))
                  .thenAccept(done -> member.awaitSum(third));
          chain.get(1, TimeUnit.MINUTES);
          assertThat(member.group().sequenceNumber()).isEqualTo(3);
          if (world.movesData()) {
            second.assertValues("collective of a dependent action", member.size());
          }
        });
  }

  /** Tolerates dependent actions that never end. */
  @ContractTest(needs = OpType.ALL_REDUCE, movesData = true, minSize = 2)
  default void aBlockedDependentActionHoldsUpNothing(ContractWorld world) throws Exception {
    CountDownLatch added = new CountDownLatch(world.size() - 1);
    CountDownLatch release = new CountDownLatch(1);
    world.run(
        member -> {
          boolean late = member.rank() == member.size() - 1;
          if (late) {
            Waiting.open(added);
          }
          Work work = member.startSum(member.floats(1).view());
          CompletableFuture<Void> blocked = CompletableFuture.completedFuture(null);
          if (!late) {
            blocked = work.toCompletableFuture().thenAccept(done -> block(release));
            added.countDown();
          }
          for (int i = 0; i < 10; i++) {
            member.startSum(member.floats(1).view()).await();
          }
          member.assertUsable();
          assertThat(late || !blocked.isDone()).as("the action is blocked").isTrue();
          member.meet();
          release.countDown();
          blocked.get(1, TimeUnit.MINUTES);
        });
  }

  private static void block(CountDownLatch release) {
    try {
      Waiting.open(release);
    } catch (InterruptedException e) {
      throw new IllegalStateException(e);
    }
  }

  /** Numbers collectives from 1, the same on all ranks, whether synchronous or not. */
  @ContractTest(needs = OpType.ALL_REDUCE)
  default void sequenceNumbersCountCollectives(ContractWorld world) throws Exception {
    world.run(
        member -> {
          assertThat(member.group().sequenceNumber()).isZero();
          List<Work> works = new ArrayList<>();
          for (int i = 1; i <= 10; i++) {
            CallOptions options = i % 3 == 0 ? CallOptions.DEFAULT : CallOptions.ASYNC;
            works.add(member.group().allReduce(member.floats(1).view(), ReduceOp.SUM, options));
            assertThat(works.get(i - 1).sequenceNumber()).isEqualTo(i);
            assertThat(member.group().sequenceNumber()).isEqualTo(i);
          }
          works.forEach(Work::await);
          member.group().allReduce(member.floats(1).view(), ReduceOp.SUM);
          member.group().allReduce(member.floats(1).view());
          assertThat(member.group().sequenceNumber()).isEqualTo(12);
        });
  }

  /** Keeps 64 collectives in flight, and checks the result of each, in any order of waiting. */
  @ContractTest(needs = OpType.ALL_REDUCE, movesData = true)
  default void manyCollectivesFlyAtOnce(ContractWorld world) throws Exception {
    List<ReductionCase> cases = new ArrayList<>();
    for (int i = 0; i < 64; i++) {
      cases.add(ReductionCase.exact(world, DType.INT32, ReduceOp.Kind.SUM, 50L * i));
    }
    world.run(
        member -> {
          List<TestTensor> tensors = new ArrayList<>();
          List<Work> works = new ArrayList<>();
          for (ReductionCase reduction : cases) {
            TestTensor tensor = reduction.input(member);
            tensors.add(tensor);
            works.add(member.startSum(tensor.view()));
          }
          Collections.reverse(works);
          works.forEach(Work::await);
          for (int i = 0; i < cases.size(); i++) {
            cases.get(i).check("asynchronous allReduce " + i, tensors.get(i));
          }
        });
  }

  /** Runs a synchronous collective after all asynchronous ones issued before it. */
  @ContractTest(needs = OpType.ALL_REDUCE, movesData = true)
  default void aSynchronousCallComesAfterEarlierAsynchronousOnes(ContractWorld world)
      throws Exception {
    world.run(
        member -> {
          for (int round = 0; round < 10; round++) {
            TestTensor tensor = member.floats(1, member.rank());
            List<Work> works = new ArrayList<>();
            for (int i = 0; i < 3; i++) {
              works.add(member.startSum(tensor.view()));
            }
            member.group().allReduce(tensor.view(), ReduceOp.SUM, CallOptions.DEFAULT).await();
            Waiting.until(
                "the end of earlier works", () -> works.stream().allMatch(Work::isCompleted));
            double n = member.size();
            double ranks = n * (n - 1) / 2;
            tensor.assertValues("four sums in a row", n * n * n * n, ranks * n * n * n);
          }
        });
  }

  /** Works on tensors whose layout needs a copy, even if no one waits before the next call. */
  @ContractTest(needs = OpType.ALL_REDUCE, movesData = true)
  default void asynchronousCallsTakeAnyLayout(ContractWorld world) throws Exception {
    ReductionCase reduction = ReductionCase.exact(world, DType.FLOAT32, ReduceOp.Kind.SUM, 35);
    world.run(
        member -> {
          List<TestTensor> tensors = new ArrayList<>();
          List<Work> works = new ArrayList<>();
          for (Layout layout : member.layouts()) {
            TestTensor tensor = reduction.input(member, layout, 5, 7);
            tensors.add(tensor);
            works.add(member.startSum(tensor.view()));
          }
          for (int i = 0; i < works.size(); i++) {
            works.get(i).await();
            reduction.check("asynchronous allReduce", tensors.get(i));
          }
        });
  }

  /** Runs calls on the same tensor one after another, even if each needs a copy of it. */
  @ContractTest(needs = OpType.ALL_REDUCE, movesData = true)
  default void asynchronousCallsOnOneTensorSeeEachOther(ContractWorld world) throws Exception {
    world.run(
        member -> {
          for (Layout layout : member.layouts()) {
            TestTensor tensor =
                member.tensor(layout, DType.FLOAT32, new double[] {1, 2, 3, 4, 5, 6}, 2, 3);
            Work last = member.startSum(tensor.view());
            for (int i = 0; i < 3; i++) {
              last = member.startSum(tensor.view());
            }
            last.await();
            double f = Math.pow(member.size(), 4);
            tensor.assertValues("four sums in a row", f, 2 * f, 3 * f, 4 * f, 5 * f, 6 * f);
          }
        });
  }

  private static void assertFinished(Work work, Tensor result) {
    work.await();
    work.synchronize();
    assertThat(work.await(Duration.ZERO)).as("a wait for a finished work").isTrue();
    assertThat(work.state()).isEqualTo(WorkState.COMPLETED);
    assertThat(work.isSuccess()).isTrue();
    assertThat(work.exception()).isEmpty();
    assertThat(work.opType()).isEqualTo(OpType.ALL_REDUCE);
    assertThat(work.sequenceNumber()).isEqualTo(1);
    assertThat(work.result()).containsExactly(result);
    assertThatThrownBy(work::sourceRank).isInstanceOf(IllegalStateException.class);
    Duration duration = work.duration();
    assertThat(duration).isPositive();
    assertThat(work.duration()).as("duration of a finished work").isEqualTo(duration);
    work.abort();
    assertThat(work.state()).as("state after a late abort").isEqualTo(WorkState.COMPLETED);
  }
}
