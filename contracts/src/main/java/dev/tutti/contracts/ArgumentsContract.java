package dev.tutti.contracts;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;

import dev.tutti.CallOptions;
import dev.tutti.DType;
import dev.tutti.Device;
import dev.tutti.MissingRanks;
import dev.tutti.OpType;
import dev.tutti.ReduceOp;
import dev.tutti.Tensor;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/**
 * Tests that bad arguments are refused before anything is sent, naming the argument and the rank,
 * and that the group stays usable.
 */
public interface ArgumentsContract extends GroupContract {
  /** Refuses roots that are not ranks. */
  @ContractTest(needs = {OpType.BROADCAST, OpType.REDUCE})
  default void badRootsAreRefused(ContractWorld world) throws Exception {
    Refusals.check(
        world,
        (member, group, refused) -> {
          Tensor tensor = member.floats(1).view();
          for (int root : new int[] {-1, member.size(), Integer.MAX_VALUE, Integer.MIN_VALUE}) {
            refused.badArgument("root", () -> group.broadcast(tensor, root));
            refused.badArgument("root", () -> group.reduce(tensor, ReduceOp.SUM, root));
            if (member.capabilities().has(OpType.GATHER)) {
              refused.badArgument("root", () -> group.gather(List.of(), tensor, root));
            }
            if (member.capabilities().has(OpType.SCATTER)) {
              refused.badArgument("root", () -> group.scatter(tensor, List.of(), root));
            }
          }
        });
  }

  /** Refuses peers that are not other ranks, and negative tags. */
  @ContractTest(needs = {OpType.SEND, OpType.RECV})
  default void badPeersAndTagsAreRefused(ContractWorld world) throws Exception {
    Refusals.check(
        world,
        (member, group, refused) -> {
          Tensor tensor = member.floats(1).view();
          for (int peer : new int[] {-1, member.size(), Integer.MAX_VALUE, member.rank()}) {
            refused.badArgument("peer", () -> group.send(tensor, peer));
            refused.badArgument("peer", () -> group.recv(tensor, peer));
          }
          if (member.size() > 1) {
            refused.badArgument(
                "tag", () -> group.send(tensor, member.next(), -1, CallOptions.DEFAULT));
            refused.badArgument(
                "tag", () -> group.recv(tensor, member.next(), -1, CallOptions.DEFAULT));
          }
          if (member.capabilities().has(OpType.RECV_ANY_SOURCE)) {
            refused.badArgument("tag", () -> group.recvAnySource(tensor, -1, CallOptions.DEFAULT));
          }
        });
  }

  /** Refuses sparse tensors, and tensors on a device for which the group has no backend. */
  @ContractTest(needs = {OpType.ALL_REDUCE, OpType.BROADCAST})
  default void wrongDevicesAndSparseTensorsAreRefused(ContractWorld world) throws Exception {
    Refusals.check(
        world,
        (member, group, refused) -> {
          Tensor elsewhere =
              Tensor.wrap(
                  MemorySegment.ofAddress(0x1000).reinterpret(4),
                  DType.FLOAT32,
                  new long[] {1},
                  new long[] {1},
                  new Device("elsewhere", 1));
          refused.badArgument("tensor is on elsewhere:1", () -> group.allReduce(elsewhere));
          refused.badArgument("tensor is on elsewhere:1", () -> group.broadcast(elsewhere, 0));
          Tensor sparse =
              Tensor.sparse(member.scratch(DType.INT64, 1, 2), member.scratch(DType.FLOAT32, 2), 5);
          refused.badArgument("dense", () -> group.broadcast(sparse, 0));
          if (member.capabilities().has(OpType.ALL_GATHER)) {
            List<Tensor> outputs = copies(member, DType.FLOAT32, 5);
            refused.badArgument("dense", () -> group.allGather(outputs, sparse));
          }
          if (member.capabilities().has(OpType.SEND) && member.size() > 1) {
            refused.badArgument("dense", () -> group.send(sparse, member.next()));
          }
        });
  }

  /**
   * Refuses host memory that cannot be used: freed, confined to a thread, read-only or overlapping.
   */
  @ContractTest(needs = {OpType.ALL_REDUCE, OpType.BROADCAST})
  default void unusableMemoryIsRefused(ContractWorld world) throws Exception {
    Refusals.check(
        world,
        (member, group, refused) -> {
          if (!member.scratch(DType.FLOAT32, 1).device().isCpu()) {
            return;
          }
          Arena arena = Arena.ofShared();
          Tensor freed = Tensor.allocate(arena, DType.FLOAT32, 4);
          arena.close();
          refused.badArgument("tensor", () -> group.allReduce(freed));
          try (Arena confined = Arena.ofConfined()) {
            Tensor confinedTensor = Tensor.allocate(confined, DType.FLOAT32, 4);
            refused.badArgument("tensor", () -> group.allReduce(confinedTensor));
          }
          Tensor readOnly =
              Tensor.wrap(member.floats(1, 2).view().segment().asReadOnly(), DType.FLOAT32, 2);
          refused.badArgument("tensor", () -> group.allReduce(readOnly));
          if (member.rank() != 0) {
            refused.badArgument("tensor", () -> group.broadcast(readOnly, 0));
          }
          Tensor overlapping =
              Tensor.wrap(
                  member.floats(1, 2).view().segment(),
                  DType.FLOAT32,
                  new long[] {3, 2},
                  new long[] {0, 1},
                  Device.CPU);
          refused.badArgument("tensor", () -> group.allReduce(overlapping));
        });
  }

  /** Refuses outputs of an all-gather that do not match the input. */
  @ContractTest(needs = OpType.ALL_GATHER)
  default void badAllGathersAreRefused(ContractWorld world) throws Exception {
    Refusals.check(
        world,
        (member, group, refused) -> {
          Tensor input = member.floats(1, 2).view();
          List<Tensor> outputs = copies(member, DType.FLOAT32, 2);
          refused.badArgument(
              "outputs", () -> group.allGather(outputs.subList(1, member.size()), input));
          List<Tensor> tooMany = new ArrayList<>(outputs);
          tooMany.add(input);
          refused.badArgument("outputs", () -> group.allGather(tooMany, input));
          List<Tensor> otherType = copies(member, DType.INT32, 2);
          refused.badArgument("outputs[0]", () -> group.allGather(otherType, input));
          List<Tensor> otherSize = new ArrayList<>(outputs);
          otherSize.set(member.rank(), member.floats(1, 2, 3).view());
          refused.badArgument(
              "outputs[" + member.rank() + "]", () -> group.allGather(otherSize, input));
        });
  }

  /** Refuses outputs of single-tensor gathers that do not match the input. */
  @ContractTest(needs = OpType.ALL_GATHER_INTO)
  default void badAllGatherIntosAreRefused(ContractWorld world) throws Exception {
    Refusals.check(
        world,
        (member, group, refused) -> {
          Tensor input = member.floats(1, 2).view();
          Tensor shorter = member.scratch(DType.FLOAT32, 2L * member.size() - 1);
          Tensor otherType = member.scratch(DType.INT32, 2L * member.size());
          refused.badArgument("output", () -> group.allGatherInto(shorter, input));
          refused.badArgument("output", () -> group.allGatherInto(otherType, input));
          if (member.capabilities().has(OpType.ALL_GATHER_INTO_COALESCED)) {
            Tensor output = member.scratch(DType.FLOAT32, 2L * member.size());
            refused.badArgument(
                "puts",
                () -> group.allGatherIntoCoalesced(List.of(), List.of(), CallOptions.DEFAULT));
            refused.badArgument(
                "puts",
                () ->
                    group.allGatherIntoCoalesced(List.of(output), List.of(), CallOptions.DEFAULT));
            refused.badArgument(
                "outputs[1]",
                () ->
                    group.allGatherIntoCoalesced(
                        List.of(output, shorter), List.of(input, input), CallOptions.DEFAULT));
          }
        });
  }

  /** Refuses lists passed to gather and scatter that do not match the root and the size. */
  @ContractTest(needs = {OpType.GATHER, OpType.SCATTER})
  default void badGathersAndScattersAreRefused(ContractWorld world) throws Exception {
    Refusals.check(
        world,
        (member, group, refused) -> {
          Tensor one = member.floats(1, 2).view();
          List<Tensor> all = copies(member, DType.FLOAT32, 2);
          List<Tensor> otherSize = copies(member, DType.FLOAT32, 3);
          List<Tensor> otherType = copies(member, DType.INT32, 2);
          if (member.rank() == 0) {
            List<Tensor> few = all.subList(1, member.size());
            refused.badArgument("outputs", () -> group.gather(few, one, 0));
            refused.badArgument("outputs[0]", () -> group.gather(otherSize, one, 0));
            refused.badArgument("outputs[0]", () -> group.gather(otherType, one, 0));
            refused.badArgument("inputs", () -> group.scatter(one, few, 0));
            refused.badArgument("inputs[0]", () -> group.scatter(one, otherSize, 0));
            refused.badArgument("inputs[0]", () -> group.scatter(one, otherType, 0));
          } else {
            refused.badArgument("outputs", () -> group.gather(all, one, 0));
            refused.badArgument("inputs", () -> group.scatter(one, all, 0));
          }
        });
  }

  /** Refuses inputs of a reduce-scatter that do not match the output. */
  @ContractTest(needs = {OpType.REDUCE_SCATTER, OpType.REDUCE_SCATTER_INTO})
  default void badReduceScattersAreRefused(ContractWorld world) throws Exception {
    Refusals.check(
        world,
        (member, group, refused) -> {
          Tensor output = member.floats(1, 2).view();
          List<Tensor> few = copies(member, DType.FLOAT32, 2).subList(1, member.size());
          List<Tensor> otherType = copies(member, DType.INT32, 2);
          List<Tensor> otherSize = new ArrayList<>(copies(member, DType.FLOAT32, 2));
          otherSize.set(member.rank(), member.floats(1, 2, 3).view());
          refused.badArgument("inputs", () -> group.reduceScatter(output, few, ReduceOp.SUM));
          refused.badArgument(
              "inputs[0]", () -> group.reduceScatter(output, otherType, ReduceOp.SUM));
          refused.badArgument(
              "inputs[", () -> group.reduceScatter(output, otherSize, ReduceOp.SUM));
          Tensor longer = member.scratch(DType.FLOAT32, 2L * member.size() + 1);
          Tensor ints = member.scratch(DType.INT32, 2L * member.size());
          refused.badArgument("input", () -> group.reduceScatterInto(output, longer, ReduceOp.SUM));
          refused.badArgument("input", () -> group.reduceScatterInto(output, ints, ReduceOp.SUM));
          if (member.capabilities().has(OpType.REDUCE_SCATTER_INTO_COALESCED)) {
            refused.badArgument(
                "puts",
                () ->
                    group.reduceScatterIntoCoalesced(
                        List.of(output), List.of(), ReduceOp.SUM, CallOptions.DEFAULT));
            refused.badArgument(
                "inputs[0]",
                () ->
                    group.reduceScatterIntoCoalesced(
                        List.of(output), List.of(longer), ReduceOp.SUM, CallOptions.DEFAULT));
          }
        });
  }

  /** Refuses lists passed to an all-to-all that do not match the group. */
  @ContractTest(needs = OpType.ALL_TO_ALL)
  default void badAllToAllsAreRefused(ContractWorld world) throws Exception {
    Refusals.check(
        world,
        (member, group, refused) -> {
          List<Tensor> all = copies(member, DType.FLOAT32, 2);
          List<Tensor> few = all.subList(1, member.size());
          List<Tensor> otherType = copies(member, DType.INT32, 2);
          refused.badArgument("inputs", () -> group.allToAll(all, few));
          refused.badArgument("outputs", () -> group.allToAll(few, all));
          refused.badArgument("outputs[0]", () -> group.allToAll(otherType, all));
          List<Tensor> otherSize = copies(member, DType.FLOAT32, 2);
          otherSize.set(member.rank(), member.floats(1).view());
          refused.badArgument(
              "outputs[" + member.rank() + "]", () -> group.allToAll(otherSize, all));
        });
  }

  /** Refuses splits that are negative, do not add up, or are not one for each rank. */
  @ContractTest(needs = OpType.ALL_TO_ALL_SINGLE)
  default void badSplitsAreRefused(ContractWorld world) throws Exception {
    Refusals.check(
        world,
        (member, group, refused) -> {
          int n = member.size();
          Tensor tensor = member.scratch(DType.FLOAT32, 2L * n, 3);
          Tensor other = member.scratch(DType.FLOAT32, 2L * n, 3);
          long[] good = copiesOf(2L, n);
          long[] sumTooLarge = good.clone();
          sumTooLarge[0] = 3;
          long[] negative = good.clone();
          negative[0] = -1;
          checkSplits(refused, "outputSplits", other, tensor, sumTooLarge, good);
          checkSplits(refused, "inputSplits", other, tensor, good, sumTooLarge);
          checkSplits(refused, "outputSplits", other, tensor, negative, good);
          checkSplits(refused, "inputSplits", other, tensor, good, negative);
          checkSplits(refused, "outputSplits", other, tensor, copiesOf(1L, n + 1), good);
          checkSplits(refused, "inputSplits", other, tensor, good, copiesOf(1L, n + 1));
          checkSplits(
              refused, "output", member.scratch(DType.INT32, 2L * n, 3), tensor, good, good);
          checkSplits(
              refused, "output", member.scratch(DType.FLOAT32, 2L * n, 2), tensor, good, good);
          if (n > 1) {
            Tensor odd = member.scratch(DType.FLOAT32, 2L * n + 1, 3);
            checkSplits(refused, "put", odd, odd, new long[0], new long[0]);
          }
          checkSplits(
              refused,
              "dimension",
              member.scratch(DType.FLOAT32),
              member.scratch(DType.FLOAT32),
              new long[0],
              new long[0]);
        });
  }

  /** Refuses lists passed to a coalesced all-reduce that are empty or mixed. */
  @ContractTest(needs = OpType.ALL_REDUCE_COALESCED)
  default void badCoalescedListsAreRefused(ContractWorld world) throws Exception {
    Refusals.check(
        world,
        (member, group, refused) -> {
          refused.badArgument(
              "tensors",
              () -> group.allReduceCoalesced(List.of(), ReduceOp.SUM, CallOptions.DEFAULT));
          Tensor floats = member.floats(1).view();
          Tensor ints = member.scratch(DType.INT32, 1);
          refused.badArgument(
              "tensors",
              () ->
                  group.allReduceCoalesced(
                      List.of(floats, ints), ReduceOp.SUM, CallOptions.DEFAULT));
        });
  }

  /** Refuses invalid deadlines. */
  @ContractTest(needs = OpType.ALL_REDUCE)
  default void badTimeoutsAreRefused(ContractWorld world) throws Exception {
    Refusals.check(
        world,
        (member, group, refused) -> {
          Duration before = group.timeout();
          for (Duration bad : new Duration[] {Duration.ZERO, Duration.ofSeconds(-5)}) {
            assertThatIllegalArgumentException()
                .isThrownBy(() -> group.setTimeout(bad))
                .withMessageContaining("timeout");
            refused.badArgument("timeout", () -> group.monitoredBarrier(bad, MissingRanks.FIRST));
          }
          assertThat(group.timeout()).isEqualTo(before);
        });
  }

  /** Refuses null, naming the argument, without harm to the group. */
  @ContractTest(needs = {OpType.ALL_REDUCE, OpType.BROADCAST})
  @SuppressWarnings("NullAway") // passes null on purpose
  default void nullIsRefused(ContractWorld world) throws Exception {
    Refusals.check(
        world,
        (member, group, refused) -> {
          Tensor tensor = member.floats(1).view();
          List<Tensor> holed = new ArrayList<>(copies(member, DType.FLOAT32, 1));
          holed.set(0, null);
          refused.badArgument("tensor must not be null", () -> group.allReduce(null));
          refused.badArgument(
              "reduceOp must not be null", () -> group.allReduce(tensor, (ReduceOp) null));
          refused.badArgument(
              "options must not be null", () -> group.allReduce(tensor, ReduceOp.SUM, null));
          refused.badArgument("tensor must not be null", () -> group.broadcast(null, 0));
          if (member.capabilities().has(OpType.ALL_GATHER)) {
            refused.badArgument(
                "outputs[0] must not be null", () -> group.allGather(holed, tensor));
          }
          assertThat(group.failure()).isEmpty();
        });
  }

  private static void checkSplits(
      Refusals refused,
      String named,
      Tensor output,
      Tensor input,
      long[] outputSplits,
      long[] inputSplits) {
    refused.badArgument(
        named,
        () -> refused.member().group().allToAllSingle(output, input, outputSplits, inputSplits));
  }

  private static List<Tensor> copies(Member member, DType dtype, long numel) {
    List<Tensor> tensors = new ArrayList<>();
    for (int i = 0; i < member.size(); i++) {
      tensors.add(member.scratch(dtype, numel));
    }
    return tensors;
  }

  private static long[] copiesOf(long value, int count) {
    long[] values = new long[count];
    Arrays.fill(values, value);
    return values;
  }
}
