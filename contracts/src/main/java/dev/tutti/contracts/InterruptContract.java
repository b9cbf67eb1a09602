package dev.tutti.contracts;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.tutti.CallOptions;
import dev.tutti.Capabilities.Feature;
import dev.tutti.MissingRanks;
import dev.tutti.OpType;
import dev.tutti.ProcessGroup;
import dev.tutti.ReduceOp;
import dev.tutti.SymmetricMemory;
import dev.tutti.WaitInterruptedException;
import dev.tutti.Work;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicReference;

/**
 * Tests of interrupts: an interrupt ends the wait for a work, and nothing else. Synchronous calls
 * end when their operations do.
 */
public interface InterruptContract extends GroupContract {
  /** Ends the wait for a collective, which completes later. */
  @ContractTest(needs = OpType.ALL_REDUCE, movesData = true, minSize = 2)
  default void anInterruptEndsTheWaitForACollective(ContractWorld world) throws Exception {
    CountDownLatch interrupted = new CountDownLatch(world.size() - 1);
    world.run(
        member -> {
          boolean late = member.rank() == member.size() - 1;
          if (late) {
            Waiting.open(interrupted);
          }
          TestTensor tensor = member.floats(member.rank(), 1);
          Work work = member.startSum(tensor.view());
          if (!late) {
            assertWaitsEnd(member, work, OpType.ALL_REDUCE);
            interrupted.countDown();
          }
          assertThat(work.await(Waiting.LONG)).isTrue();
          double n = member.size();
          tensor.assertValues("an all-reduce whose wait was interrupted", n * (n - 1) / 2, n);
          member.assertUsable();
        });
  }

  /** Ends the wait for a message, which arrives later. */
  @ContractTest(
      needs = {OpType.SEND, OpType.RECV},
      movesData = true,
      minSize = 2)
  default void anInterruptEndsTheWaitForAMessage(ContractWorld world) throws Exception {
    CountDownLatch interrupted = new CountDownLatch(1);
    world.run(
        member -> {
          if (member.rank() == 0) {
            TestTensor tensor = member.floats(0, 0);
            Work work = member.group().recv(tensor.view(), 1, 0, CallOptions.ASYNC);
            assertWaitsEnd(member, work, OpType.RECV);
            interrupted.countDown();
            assertThat(work.await(Waiting.LONG)).isTrue();
            tensor.assertValues("a message whose wait was interrupted", 3, 4);
          } else if (member.rank() == 1) {
            Waiting.open(interrupted);
            member.group().send(member.floats(3, 4).view(), 0);
          }
          member.assertUsable();
        });
  }

  /** Ends a wait that began before the interrupt. */
  @ContractTest(needs = OpType.ALL_REDUCE, movesData = true, minSize = 2)
  default void anInterruptReachesAThreadThatWaits(ContractWorld world) throws Exception {
    AtomicReference<Thread> waiting = new AtomicReference<>();
    CountDownLatch ended = new CountDownLatch(1);
    world.run(
        member -> {
          boolean late = member.rank() == member.size() - 1;
          if (late) {
            Waiting.until("the thread of rank 0", () -> waiting.get() != null);
            waiting.get().interrupt();
            Waiting.open(ended);
          }
          TestTensor tensor = member.floats(1);
          Work work = member.startSum(tensor.view());
          if (member.rank() == 0) {
            waiting.set(Thread.currentThread());
            assertThatThrownBy(work::await).isInstanceOf(WaitInterruptedException.class);
            assertThat(Thread.interrupted()).as("interrupt status").isTrue();
            ended.countDown();
          }
          assertThat(work.await(Waiting.LONG)).isTrue();
          tensor.assertValues("an all-reduce whose wait was interrupted", member.size());
          member.assertUsable();
        });
  }

  /** Asserts that waits end but the operation does not, and clears the thread's interrupt. */
  private static void assertWaitsEnd(Member member, Work work, OpType type) {
    Thread.currentThread().interrupt();
    for (Refusals.Call wait :
        List.<Refusals.Call>of(work::await, () -> work.await(Waiting.LONGEST))) {
      assertThatThrownBy(wait::run)
          .isInstanceOf(WaitInterruptedException.class)
          .hasMessageContaining("rank " + member.rank())
          .hasMessageContaining(type.label())
          .hasMessageContaining("the operation is still running");
      assertThat(Thread.currentThread().isInterrupted()).as("interrupt status").isTrue();
    }
    assertThat(Thread.interrupted()).isTrue();
    assertThat(work.isCompleted()).isFalse();
    assertThat(member.group().failure()).isEmpty();
  }

  /** Completes the synchronous calls of interrupted threads. */
  @ContractTest(needs = OpType.ALL_REDUCE)
  default void synchronousCallsOutlastAnInterrupt(ContractWorld world) throws Exception {
    world.run(
        member -> {
          ProcessGroup group = member.group();
          Thread.currentThread().interrupt();
          member.assertUsable();
          TestTensor tensor = member.floats(1);
          Work _ = group.allReduce(tensor.view(), ReduceOp.SUM, CallOptions.DEFAULT);
          if (member.capabilities().has(OpType.BARRIER)) {
            group.barrier();
          }
          group.monitoredBarrier(Waiting.LONG, MissingRanks.ALL);
          if (member.capabilities().has(OpType.SEND)
              && member.capabilities().has(OpType.RECV)
              && world.movesData()
              && member.size() > 1) {
            exchange(member);
          }
          group.batch().allReduce(member.floats(1).view(), ReduceOp.SUM).run();
          if (world.movesData()) {
            tensor.assertValues("an all-reduce of an interrupted thread", member.size());
          }
          assertThat(Thread.interrupted()).as("interrupt status").isTrue();
        });
  }

  private static void exchange(Member member) {
    TestTensor received = member.floats(0);
    if (member.rank() == 0) {
      member.group().send(member.floats(7).view(), 1);
    } else if (member.rank() == 1) {
      member.group().recv(received.view(), 0);
      received.assertValues("a message to an interrupted thread", 7);
    }
  }

  /** Completes a synchronous call whose thread is interrupted while it waits. */
  @ContractTest(needs = OpType.ALL_REDUCE, movesData = true, minSize = 2)
  default void anInterruptDoesNotEndASynchronousCall(ContractWorld world) throws Exception {
    AtomicReference<Thread> caller = new AtomicReference<>();
    world.run(
        member -> {
          TestTensor tensor = member.floats(1);
          if (member.rank() == 0) {
            caller.set(Thread.currentThread());
          } else if (member.rank() == 1) {
            Waiting.until("the thread of rank 0", () -> caller.get() != null);
            caller.get().interrupt();
          }
          member.group().allReduce(tensor.view());
          tensor.assertValues("an all-reduce whose caller was interrupted", member.size());
          assertThat(Thread.interrupted()).as("interrupt status").isEqualTo(member.rank() == 0);
          member.assertUsable();
        });
  }

  /** Creates groups and memory on interrupted threads. */
  @ContractTest(needs = OpType.ALL_REDUCE)
  default void interruptedThreadsMakeGroupsAndMemory(ContractWorld world) throws Exception {
    world.run(
        member -> {
          Thread.currentThread().interrupt();
          ProcessGroup half = member.group().split(member.rank() % 2, 0).orElseThrow();
          member.in(half).assertUsable();
          ProcessGroup first = member.group().subgroup(List.of(0)).orElse(null);
          if (first != null) {
            member.in(first).assertUsable();
          }
          if (member.capabilities().has(Feature.SYMMETRIC_MEMORY)) {
            try (SymmetricMemory memory = member.group().allocateSymmetric(64)) {
              memory.barrier(0, Waiting.LONG);
              memory.putSignal(member.next(), 1, Waiting.LONG);
              memory.waitSignal(member.previous(), 1, Waiting.LONG);
            }
          }
          assertThat(Thread.interrupted()).as("interrupt status").isTrue();
          member.assertUsable();
        });
  }
}
