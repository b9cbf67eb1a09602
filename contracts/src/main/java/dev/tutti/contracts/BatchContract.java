package dev.tutti.contracts;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.tutti.Batch;
import dev.tutti.Capabilities.Feature;
import dev.tutti.DType;
import dev.tutti.OpType;
import dev.tutti.ProcessGroup;
import dev.tutti.ReduceOp;
import dev.tutti.Work;
import java.util.ArrayList;
import java.util.List;

/**
 * Tests of batches: nothing starts before the batch runs, all operations end with it, and ranks may
 * add them in different orders.
 */
public interface BatchContract extends GroupContract {
  /**
   * Exchanges messages between all pairs in one batch, in an order that would deadlock if they were
   * sent one by one.
   */
  @ContractTest(
      needs = {OpType.SEND, OpType.RECV},
      movesData = true,
      minSize = 2)
  default void batchOfMessagesExchangesAll(ContractWorld world) throws Exception {
    world.run(
        member -> {
          int n = member.size();
          int tag = member.capabilities().has(Feature.TAGS) ? 4 : 0;
          Batch batch = member.group().batch();
          List<TestTensor> received = new ArrayList<>();
          for (int step = 1; step < n; step++) {
            int from = (member.rank() + n - step) % n;
            int to = (member.rank() + step) % n;
            TestTensor target = member.blank(Layout.CONTIGUOUS, DType.INT32, 5000);
            received.add(target);
            double[] values = TestData.constant(DType.INT32, 100.0 * member.rank() + to, 5000);
            batch.recv(target.view(), from, tag);
            batch.send(member.tensor(DType.INT32, values, 5000).view(), to, tag);
          }
          batch.run();
          for (int step = 1; step < n; step++) {
            int from = (member.rank() + n - step) % n;
            received
                .get(step - 1)
                .assertValues(
                    "message from " + from,
                    TestData.constant(DType.INT32, 100.0 * from + member.rank(), 5000));
          }
        });
  }

  /** Runs collectives as one. */
  @ContractTest(
      needs = {OpType.ALL_REDUCE, OpType.ALL_GATHER_INTO, OpType.REDUCE_SCATTER_INTO},
      movesData = true)
  default void batchOfCollectivesRunsAll(ContractWorld world) throws Exception {
    ReductionCase reduced = ReductionCase.exact(world, DType.INT32, ReduceOp.Kind.SUM, 11);
    ReductionCase parts =
        ReductionCase.exact(world, DType.FLOAT32, ReduceOp.Kind.SUM, 6L * world.size());
    world.run(
        member -> {
          TestTensor tensor = reduced.input(member);
          TestTensor gathered = member.blank(Layout.CONTIGUOUS, DType.FLOAT32, member.size());
          TestTensor part = parts.output(member, Layout.CONTIGUOUS, 6);
          Work work =
              member
                  .group()
                  .batch()
                  .allReduce(tensor.view(), ReduceOp.SUM)
                  .allGatherInto(gathered.view(), member.floats(member.rank()).view())
                  .reduceScatterInto(part.view(), parts.input(member).view(), ReduceOp.SUM)
                  .withTimeout(Waiting.LONG)
                  .start();
          work.await();
          assertThat(work.isSuccess()).isTrue();
          assertThat(work.opType()).isEqualTo(OpType.BATCH);
          reduced.check("allReduce of a batch", tensor);
          parts.checkPart("reduceScatterInto of a batch", part, member.rank());
          double[] ranks = new double[member.size()];
          for (int rank = 0; rank < ranks.length; rank++) {
            ranks[rank] = rank;
          }
          gathered.assertValues("allGatherInto of a batch", ranks);
        });
  }

  /** Starts nothing before the batch runs: a discarded batch leaves no trace. */
  @ContractTest(needs = OpType.ALL_REDUCE)
  default void aDroppedBatchSendsNothing(ContractWorld world) throws Exception {
    world.run(
        member -> {
          TestTensor tensor = member.floats(7);
          if (member.rank() == 0) {
            member.group().batch().allReduce(tensor.view(), ReduceOp.SUM);
          }
          assertThat(member.group().sequenceNumber()).isZero();
          member.assertUsable();
          tensor.assertValues("tensor of a dropped batch", 7);
        });
  }

  /** Runs an empty batch at once, and no batch twice. */
  @ContractTest
  default void aBatchRunsOnce(ContractWorld world) throws Exception {
    world.run(
        member -> {
          Batch batch = member.group().batch();
          batch.run();
          assertThatThrownBy(batch::run).isInstanceOf(IllegalStateException.class);
          assertThatThrownBy(batch::start).isInstanceOf(IllegalStateException.class);
          member.assertUsable();
        });
  }

  /** Refuses a batch with a bad part as a whole, so that nothing of it is sent. */
  @ContractTest(
      needs = {OpType.SEND, OpType.ALL_REDUCE},
      minSize = 2)
  default void aBatchWithABadPartSendsNothing(ContractWorld world) throws Exception {
    world.run(
        member -> {
          TestTensor tensor = member.floats(7);
          if (member.rank() == 0) {
            ProcessGroup group = member.group();
            new Refusals(member)
                .badArgument(
                    "peer",
                    () ->
                        group
                            .batch()
                            .allReduce(tensor.view(), ReduceOp.SUM)
                            .send(tensor.view(), member.size(), 0)
                            .run());
          }
          member.assertUsable();
          tensor.assertValues("tensor of a refused batch", 7);
        });
  }
}
