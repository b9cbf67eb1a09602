package dev.tutti.contracts;

import dev.tutti.CallOptions;
import dev.tutti.DType;
import dev.tutti.OpType;
import dev.tutti.Tensor;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/** Tests of all-gather into a list, into one tensor, and of several tensors at once. */
public interface AllGatherContract extends GroupContract {
  /** Gathers every type into a list. */
  @ContractTest(needs = OpType.ALL_GATHER, movesData = true)
  default void allGatherCollectsEveryType(ContractWorld world) throws Exception {
    world.run(member -> Moves.everyType(member, AllGatherContract::checkList));
  }

  /** Gathers tensors of every size and layout into a list. */
  @ContractTest(needs = OpType.ALL_GATHER, movesData = true)
  default void allGatherTakesAnySizeAndLayout(ContractWorld world) throws Exception {
    world.run(
        member -> {
          Moves.anySizeAndLayout(member, AllGatherContract::checkList);
          checkList(member, Layout.CONTIGUOUS, Layout.CONTIGUOUS, DType.FLOAT32);
        });
  }

  /** Gathers with the input already at its place among the outputs. */
  @ContractTest(needs = OpType.ALL_GATHER, movesData = true)
  default void allGatherWorksInPlace(ContractWorld world) throws Exception {
    world.run(
        member -> {
          for (long numel : world.partSizes()) {
            TestTensor mine = member.toMove(Layout.CONTIGUOUS, DType.INT32, numel, numel);
            List<TestTensor> outputs =
                new ArrayList<>(member.blanks(Layout.CONTIGUOUS, DType.INT32, numel));
            outputs.set(member.rank(), mine);
            member.group().allGather(TestTensor.views(outputs), mine.view());
            TestTensor.assertMovedFromEach("allGather in place from rank", outputs, numel);
          }
        });
  }

  /** Gathers every type into one tensor. */
  @ContractTest(needs = OpType.ALL_GATHER_INTO, movesData = true)
  default void allGatherIntoCollectsEveryType(ContractWorld world) throws Exception {
    world.run(member -> Moves.everyType(member, AllGatherContract::checkInto));
  }

  /** Gathers tensors of every size and layout into one tensor. */
  @ContractTest(needs = OpType.ALL_GATHER_INTO, movesData = true)
  default void allGatherIntoTakesAnySizeAndLayout(ContractWorld world) throws Exception {
    world.run(member -> Moves.anySizeAndLayout(member, AllGatherContract::checkInto));
  }

  /** Gathers with the input already at its place in the output. */
  @ContractTest(needs = OpType.ALL_GATHER_INTO, movesData = true)
  default void allGatherIntoWorksInPlace(ContractWorld world) throws Exception {
    world.run(
        member -> {
          for (DType dtype : member.movable()) {
            TestTensor output = withOwnPart(member, dtype, 6);
            member.group().allGatherInto(output.view(), member.ownPart(output));
            output.assertValues(
                "allGatherInto in place of " + dtype.label(), concatenated(member, dtype, 6));
          }
        });
  }

  /** Gathers several tensors of different sizes at once. */
  @ContractTest(needs = OpType.ALL_GATHER_INTO_COALESCED, movesData = true)
  default void allGatherIntoCoalescedCollectsEachTensor(ContractWorld world) throws Exception {
    world.run(
        member -> {
          int[] numels = {5, 0, 12};
          for (DType dtype : member.movable()) {
            List<TestTensor> inputs = new ArrayList<>();
            List<TestTensor> outputs = new ArrayList<>();
            for (int numel : numels) {
              inputs.add(member.toMove(member.layout(Layout.STRIDED), dtype, numel, numel));
              outputs.add(
                  member.blank(member.layout(Layout.NARROWED), dtype, member.size(), numel));
            }
            member
                .group()
                .allGatherIntoCoalesced(
                    TestTensor.views(outputs), TestTensor.views(inputs), CallOptions.DEFAULT);
            for (int i = 0; i < numels.length; i++) {
              outputs
                  .get(i)
                  .assertValues(
                      "allGatherIntoCoalesced of " + dtype.label() + ", tensor " + i,
                      concatenated(member, dtype, numels[i]));
            }
          }
        });
  }

  /** Gathers several tensors with the inputs already at their places in the outputs. */
  @ContractTest(needs = OpType.ALL_GATHER_INTO_COALESCED, movesData = true)
  default void allGatherIntoCoalescedWorksInPlace(ContractWorld world) throws Exception {
    world.run(
        member -> {
          List<TestTensor> outputs =
              List.of(withOwnPart(member, DType.INT32, 5), withOwnPart(member, DType.INT32, 1024));
          List<Tensor> inputs = outputs.stream().map(member::ownPart).toList();
          member
              .group()
              .allGatherIntoCoalesced(TestTensor.views(outputs), inputs, CallOptions.DEFAULT);
          for (int i = 0; i < inputs.size(); i++) {
            outputs
                .get(i)
                .assertValues(
                    "allGatherIntoCoalesced in place, tensor " + i,
                    concatenated(member, DType.INT32, inputs.get(i).numel()));
          }
        });
  }

  /** Creates an output in which only this rank's part holds what the rank has to move. */
  private static TestTensor withOwnPart(Member member, DType dtype, long numel) {
    double[] values = TestData.constant(dtype, 1, numel * member.size());
    double[] mine = TestData.toMove(dtype, member.rank(), numel, numel);
    System.arraycopy(mine, 0, values, mine.length * member.rank(), mine.length);
    return member.tensor(dtype, values, numel * member.size());
  }

  private static void checkList(Member member, Layout in, Layout out, DType dtype, long... shape) {
    long numel = TestData.numel(shape);
    TestTensor input = member.toMove(in, dtype, numel, shape);
    List<TestTensor> outputs = member.blanks(out, dtype, shape);
    member.group().allGather(TestTensor.views(outputs), input.view());
    String what = "allGather of " + dtype.label();
    TestTensor.assertMovedFromEach(what + " from rank", outputs, numel);
    input.assertMoved(what + ", input", member.rank(), numel);
  }

  private static void checkInto(Member member, Layout in, Layout out, DType dtype, long... shape) {
    long numel = TestData.numel(shape);
    TestTensor input = member.toMove(in, dtype, numel, shape);
    long[] whole = shape.clone();
    whole[0] *= member.size();
    TestTensor output = member.blank(out, dtype, whole);
    member.group().allGatherInto(output.view(), input.view());
    String what = "allGatherInto of " + dtype.label();
    output.assertValues(what, concatenated(member, dtype, numel));
    input.assertMoved(what + ", input", member.rank(), numel);
  }

  /** Returns what all ranks have to move, with the number of elements as the seed. */
  private static double[] concatenated(Member member, DType dtype, long numel) {
    return member.ranks().stream()
        .flatMapToDouble(rank -> Arrays.stream(TestData.toMove(dtype, rank, numel, numel)))
        .toArray();
  }
}
