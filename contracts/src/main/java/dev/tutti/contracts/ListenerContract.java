package dev.tutti.contracts;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.CallOptions;
import dev.tutti.GroupListener;
import dev.tutti.OpType;
import dev.tutti.ReduceOp;
import dev.tutti.Registration;
import dev.tutti.Tensor;
import dev.tutti.Work;
import dev.tutti.WorkState;

/**
 * Tests of listeners: pairs of before and after, the threads they are called on, and listeners that
 * fail.
 */
public interface ListenerContract extends GroupContract {
  /** Reports synchronous operations on the caller's thread, before and after. */
  @ContractTest(needs = OpType.ALL_REDUCE, blocking = true)
  default void synchronousCallsAreHeardOnTheirThread(ContractWorld world) throws Exception {
    world.run(
        member -> {
          ListenerRecorder recorder = new ListenerRecorder();
          Registration registration = member.group().addListener(recorder);
          Tensor tensor = member.floats(1).view();
          member.group().allReduce(tensor);
          member.group().allReduce(tensor, ReduceOp.SUM, CallOptions.DEFAULT);
          assertThat(recorder.before).hasSize(2);
          assertThat(recorder.ends).hasSize(2);
          for (int i = 0; i < 2; i++) {
            GroupListener.OpEvent event = recorder.before.get(i);
            assertThat(event.opType()).isEqualTo(OpType.ALL_REDUCE);
            assertThat(event.group()).isEqualTo(member.group().name());
            assertThat(event.rank()).isEqualTo(member.rank());
            assertThat(event.sequenceNumber()).isEqualTo(i + 1);
            assertThat(event.isAsync()).isFalse();
            assertThat(event.root()).isEmpty();
            assertThat(event.inputs()).containsExactly(tensor);
            assertThat(event.outputs()).containsExactly(tensor);
            assertThat(event.byteCount()).isEqualTo(tensor.byteSize());
            ListenerRecorder.End end = recorder.endOf(event);
            assertThat(end.event()).isEqualTo(event);
            assertThat(end.outcome().state()).isEqualTo(WorkState.COMPLETED);
            assertThat(end.outcome().failure()).isEmpty();
            assertThat(end.outcome().duration()).isPositive();
            assertThat(end.thread()).isSameAs(Thread.currentThread());
          }
          registration.close();
          member.group().allReduce(tensor);
          assertThat(recorder.before).as("notified after removal").hasSize(2);
        });
  }

  /** Reports the end of asynchronous operations on another thread, each with its own id. */
  @ContractTest(needs = OpType.ALL_REDUCE)
  default void asynchronousCallsAreHeardInPairs(ContractWorld world) throws Exception {
    world.run(
        member -> {
          ListenerRecorder recorder = new ListenerRecorder();
          member.group().addListener(recorder);
          for (int i = 0; i < 20; i++) {
            member.startSum(member.floats(1).view());
          }
          Waiting.until("20 ends", () -> recorder.ends.size() == 20);
          assertThat(recorder.before).extracting(GroupListener.OpEvent::id).doesNotHaveDuplicates();
          for (GroupListener.OpEvent event : recorder.before) {
            assertThat(event.isAsync()).isTrue();
            ListenerRecorder.End end = recorder.endOf(event);
            assertThat(end.event()).isEqualTo(event);
            assertThat(end.outcome().state()).isEqualTo(WorkState.COMPLETED);
            assertThat(end.thread()).isNotSameAs(Thread.currentThread());
          }
        });
  }

  /** Continues when a listener throws, and still calls the other listeners. */
  @ContractTest(needs = OpType.ALL_REDUCE)
  default void aFailingListenerHarmsNobody(ContractWorld world) throws Exception {
    world.run(
        member -> {
          member.group().addListener(ListenerRecorder.thrower());
          ListenerRecorder recorder = new ListenerRecorder();
          member.group().addListener(recorder);
          member.assertUsable();
          Work work = member.startSum(member.floats(1).view());
          work.await();
          assertThat(work.isSuccess()).isTrue();
          Waiting.until("two ends", () -> recorder.ends.size() == 2);
          assertThat(recorder.before).hasSize(2);
        });
  }

  /** Reports an abort once. */
  @ContractTest(minSize = 1)
  default void anAbortIsHeardOnce(ContractWorld world) throws Exception {
    world.run(
        member -> {
          ListenerRecorder recorder = new ListenerRecorder();
          member.group().addListener(recorder);
          member.meet();
          if (member.rank() == 0) {
            member.group().abort("stop now");
            member.group().abort("stop again");
          }
          Waiting.until("the abort", () -> !recorder.failures.isEmpty());
          member.group().close();
          assertThat(recorder.failures).hasSize(1);
          assertThat(recorder.failures.get(0)).hasMessageContaining("stop now");
          assertThat(member.group().failure())
              .hasValueSatisfying(
                  failure ->
                      assertThat(failure)
                          .hasSameClassAs(recorder.failures.get(0))
                          .hasMessage(recorder.failures.get(0).getMessage()));
        });
  }
}
