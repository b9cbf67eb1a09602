package dev.tutti.testing;

import dev.tutti.CallOptions;
import dev.tutti.Capabilities.Feature;
import dev.tutti.DType;
import dev.tutti.OpType;
import dev.tutti.Tensor;
import dev.tutti.testing.Member.LayoutPair;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/** Tests of all-gather into a list, into one tensor, and of several tensors at once. */
public interface AllGatherContract extends GroupContract {
  /** Gathers every type into a list. */
  @ContractTest(needs = OpType.ALL_GATHER, features = Feature.REAL_RESULTS)
  default void allGatherCollectsEveryType(ContractWorld world) throws Exception {
    world.run(
        member -> {
          for (DType dtype : member.movable()) {
            checkList(member, Layout.CONTIGUOUS, Layout.CONTIGUOUS, dtype, 7);
          }
        });
  }

  /** Gathers tensors of every size and layout into a list. */
  @ContractTest(needs = OpType.ALL_GATHER, features = Feature.REAL_RESULTS)
  default void allGatherTakesAnySizeAndLayout(ContractWorld world) throws Exception {
    world.run(
        member -> {
          for (long numel : world.partSizes()) {
            checkList(member, Layout.CONTIGUOUS, Layout.CONTIGUOUS, DType.INT32, numel);
          }
          checkList(member, Layout.CONTIGUOUS, Layout.CONTIGUOUS, DType.FLOAT32);
          for (LayoutPair pair : member.layoutPairs()) {
            checkList(member, pair.input(), pair.output(), DType.FLOAT32, 3, 5);
          }
        });
  }

  /** Gathers parts of unequal size, some of them empty. */
  @ContractTest(
      needs = OpType.ALL_GATHER,
      features = {Feature.REAL_RESULTS, Feature.UNEVEN_PARTS})
  default void allGatherTakesUnevenParts(ContractWorld world) throws Exception {
    world.run(
        member -> {
          for (DType dtype : member.movable()) {
            List<TestTensor> outputs = new ArrayList<>();
            for (int rank = 0; rank < member.size(); rank++) {
              outputs.add(member.blank(Layout.CONTIGUOUS, dtype, 3L * rank));
            }
            long mine = 3L * member.rank();
            TestTensor input =
                member.tensor(dtype, TestData.toMove(dtype, member.rank(), 5, mine), mine);
            member.group().allGather(views(outputs), input.view());
            for (int rank = 0; rank < member.size(); rank++) {
              outputs
                  .get(rank)
                  .assertValues(
                      "uneven allGather of " + dtype.label() + " from " + rank,
                      TestData.toMove(dtype, rank, 5, 3L * rank));
            }
          }
        });
  }

  /** Gathers with the input already at its place among the outputs. */
  @ContractTest(needs = OpType.ALL_GATHER, features = Feature.REAL_RESULTS)
  default void allGatherWorksInPlace(ContractWorld world) throws Exception {
    world.run(
        member -> {
          for (long numel : world.partSizes()) {
            List<TestTensor> outputs = new ArrayList<>();
            for (int rank = 0; rank < member.size(); rank++) {
              outputs.add(member.blank(Layout.CONTIGUOUS, DType.INT32, numel));
            }
            double[] mine = TestData.toMove(DType.INT32, member.rank(), numel, numel);
            outputs.set(member.rank(), member.tensor(DType.INT32, mine, numel));
            member.group().allGather(views(outputs), outputs.get(member.rank()).view());
            for (int rank = 0; rank < member.size(); rank++) {
              double[] theirs = TestData.toMove(DType.INT32, rank, numel, numel);
              outputs.get(rank).assertValues("allGather in place from " + rank, theirs);
            }
          }
        });
  }

  /** Gathers every type into one tensor. */
  @ContractTest(needs = OpType.ALL_GATHER_INTO, features = Feature.REAL_RESULTS)
  default void allGatherIntoCollectsEveryType(ContractWorld world) throws Exception {
    world.run(
        member -> {
          for (DType dtype : member.movable()) {
            checkInto(member, Layout.CONTIGUOUS, Layout.CONTIGUOUS, dtype, 7);
          }
        });
  }

  /** Gathers tensors of every size and layout into one tensor. */
  @ContractTest(needs = OpType.ALL_GATHER_INTO, features = Feature.REAL_RESULTS)
  default void allGatherIntoTakesAnySizeAndLayout(ContractWorld world) throws Exception {
    world.run(
        member -> {
          for (long numel : world.partSizes()) {
            checkInto(member, Layout.CONTIGUOUS, Layout.CONTIGUOUS, DType.INT32, numel);
          }
          for (LayoutPair pair : member.layoutPairs()) {
            checkInto(member, pair.input(), pair.output(), DType.FLOAT32, 3, 5);
          }
        });
  }

  /** Gathers with the input already at its place in the output. */
  @ContractTest(needs = OpType.ALL_GATHER_INTO, features = Feature.REAL_RESULTS)
  default void allGatherIntoWorksInPlace(ContractWorld world) throws Exception {
    world.run(
        member -> {
          for (DType dtype : member.movable()) {
            double[] before = TestData.constant(dtype, 1, 6L * member.size());
            double[] mine = TestData.toMove(dtype, member.rank(), 6, 6);
            System.arraycopy(mine, 0, before, mine.length * member.rank(), mine.length);
            TestTensor output = member.tensor(dtype, before, 6L * member.size());
            Tensor input = output.view().narrow(0, 6L * member.rank(), 6);
            member.group().allGatherInto(output.view(), input);
            output.assertValues(
                "allGatherInto in place of " + dtype.label(), concatenated(member, dtype, 6, 6));
          }
        });
  }

  /** Gathers several tensors of different sizes at once. */
  @ContractTest(needs = OpType.ALL_GATHER_INTO_COALESCED, features = Feature.REAL_RESULTS)
  default void allGatherIntoCoalescedCollectsEachTensor(ContractWorld world) throws Exception {
    world.run(
        member -> {
          int[] numels = {5, 0, 12};
          for (DType dtype : member.movable()) {
            List<TestTensor> inputs = new ArrayList<>();
            List<TestTensor> outputs = new ArrayList<>();
            for (int numel : numels) {
              double[] mine = TestData.toMove(dtype, member.rank(), numel, numel);
              inputs.add(member.tensor(member.layout(Layout.STRIDED), dtype, mine, numel));
              outputs.add(
                  member.blank(member.layout(Layout.NARROWED), dtype, member.size(), numel));
            }
            member
                .group()
                .allGatherIntoCoalesced(views(outputs), views(inputs), CallOptions.DEFAULT);
            for (int i = 0; i < numels.length; i++) {
              outputs
                  .get(i)
                  .assertValues(
                      "allGatherIntoCoalesced of " + dtype.label() + ", tensor " + i,
                      concatenated(member, dtype, numels[i], numels[i]));
            }
          }
        });
  }

  /** Gathers several tensors with the inputs already at their places in the outputs. */
  @ContractTest(needs = OpType.ALL_GATHER_INTO_COALESCED, features = Feature.REAL_RESULTS)
  default void allGatherIntoCoalescedWorksInPlace(ContractWorld world) throws Exception {
    world.run(
        member -> {
          int[] numels = {5, 1024};
          List<TestTensor> outputs = new ArrayList<>();
          List<Tensor> inputs = new ArrayList<>();
          for (int numel : numels) {
            double[] before = TestData.constant(DType.INT32, 99, (long) numel * member.size());
            double[] mine = TestData.toMove(DType.INT32, member.rank(), numel, numel);
            System.arraycopy(mine, 0, before, numel * member.rank(), numel);
            TestTensor output = member.tensor(DType.INT32, before, before.length);
            outputs.add(output);
            inputs.add(output.view().narrow(0, (long) numel * member.rank(), numel));
          }
          member.group().allGatherIntoCoalesced(views(outputs), inputs, CallOptions.DEFAULT);
          for (int i = 0; i < numels.length; i++) {
            outputs
                .get(i)
                .assertValues(
                    "allGatherIntoCoalesced in place, tensor " + i,
                    concatenated(member, DType.INT32, numels[i], numels[i]));
          }
        });
  }

  private static void checkList(Member member, Layout in, Layout out, DType dtype, long... shape) {
    long numel = numel(shape);
    double[] mine = TestData.toMove(dtype, member.rank(), numel, numel);
    TestTensor input = member.tensor(in, dtype, mine, shape);
    List<TestTensor> outputs = new ArrayList<>();
    for (int rank = 0; rank < member.size(); rank++) {
      outputs.add(member.blank(out, dtype, shape));
    }
    member.group().allGather(views(outputs), input.view());
    String what = "allGather of " + dtype.label();
    for (int rank = 0; rank < member.size(); rank++) {
      outputs
          .get(rank)
          .assertValues(what + " from " + rank, TestData.toMove(dtype, rank, numel, numel));
    }
    input.assertValues(what + ", input", mine);
  }

  private static void checkInto(Member member, Layout in, Layout out, DType dtype, long... shape) {
    long numel = numel(shape);
    double[] mine = TestData.toMove(dtype, member.rank(), numel, numel);
    TestTensor input = member.tensor(in, dtype, mine, shape);
    long[] whole = shape.clone();
    whole[0] *= member.size();
    TestTensor output = member.blank(out, dtype, whole);
    member.group().allGatherInto(output.view(), input.view());
    String what = "allGatherInto of " + dtype.label();
    output.assertValues(what, concatenated(member, dtype, numel, numel));
    input.assertValues(what + ", input", mine);
  }

  private static double[] concatenated(Member member, DType dtype, long seed, long numel) {
    int length = TestData.reals(dtype, numel);
    double[] all = new double[length * member.size()];
    for (int rank = 0; rank < member.size(); rank++) {
      double[] part = TestData.toMove(dtype, rank, seed, numel);
      System.arraycopy(part, 0, all, rank * length, length);
    }
    return all;
  }

  private static long numel(long... shape) {
    return Arrays.stream(shape).reduce(1, (a, b) -> a * b);
  }

  private static List<Tensor> views(List<TestTensor> tensors) {
    return tensors.stream().map(TestTensor::view).toList();
  }
}
