package dev.tutti.contracts;

import dev.tutti.CallOptions;
import dev.tutti.DType;
import dev.tutti.OpType;
import dev.tutti.ReduceOp;
import dev.tutti.Tensor;
import dev.tutti.contracts.Member.LayoutPair;
import java.util.Arrays;
import java.util.List;

/**
 * Tests of reduce-scatter of a list, of one tensor, and of several tensors at once, with tolerances
 * as for all-reduce. The inputs stay unchanged.
 */
public interface ReduceScatterContract extends GroupContract {
  /** Reduces lists of every type with every operator. */
  @ContractTest(needs = OpType.REDUCE_SCATTER, movesData = true)
  default void reduceScatterIsExactOnWholeNumbers(ContractWorld world) throws Exception {
    world.runEach(
        ReductionCase.exactOfEachKind(world, 7L * world.size()),
        (member, reduction) ->
            checkList(member, reduction, Layout.CONTIGUOUS, Layout.CONTIGUOUS, 7));
  }

  /** Reduces lists of tensors of every size and layout. */
  @ContractTest(needs = OpType.REDUCE_SCATTER, movesData = true)
  default void reduceScatterTakesAnySizeAndLayout(ContractWorld world) throws Exception {
    List<ReductionCase> cases = sized(world, world.partSizes());
    ReductionCase layouts = sum(world, 15);
    ReductionCase scalars = sum(world, 1);
    world.run(
        member -> {
          for (ReductionCase each : cases) {
            checkList(member, each, Layout.CONTIGUOUS, Layout.CONTIGUOUS, each.partNumel());
          }
          checkList(member, scalars, Layout.CONTIGUOUS, Layout.CONTIGUOUS);
          for (LayoutPair pair : member.layoutPairs()) {
            checkList(member, layouts, pair.input(), pair.output(), 3, 5);
          }
        });
  }

  /** Reduces one tensor of every type with every operator. */
  @ContractTest(needs = OpType.REDUCE_SCATTER_INTO, movesData = true)
  default void reduceScatterIntoIsExactOnWholeNumbers(ContractWorld world) throws Exception {
    world.runEach(
        ReductionCase.exactOfEachKind(world, 7L * world.size()),
        (member, reduction) ->
            checkInto(member, reduction, Layout.CONTIGUOUS, Layout.CONTIGUOUS, 7));
  }

  /** Reduces real numbers within the rounding tolerance. */
  @ContractTest(needs = OpType.REDUCE_SCATTER_INTO, movesData = true)
  default void reduceScatterIntoOfRealNumbersIsNearTheReference(ContractWorld world)
      throws Exception {
    world.runEach(
        ReductionCase.realOfEachKind(world, 129 * world.size()),
        (member, reduction) ->
            checkInto(member, reduction, Layout.CONTIGUOUS, Layout.CONTIGUOUS, 129));
  }

  /** Reduces one tensor of every size and layout. */
  @ContractTest(needs = OpType.REDUCE_SCATTER_INTO, movesData = true)
  default void reduceScatterIntoTakesAnySizeAndLayout(ContractWorld world) throws Exception {
    List<ReductionCase> cases = sized(world, world.partSizes());
    ReductionCase layouts = sum(world, 15);
    world.run(
        member -> {
          for (ReductionCase each : cases) {
            checkInto(member, each, Layout.CONTIGUOUS, Layout.CONTIGUOUS, each.partNumel());
          }
          for (LayoutPair pair : member.layoutPairs()) {
            checkInto(member, layouts, pair.input(), pair.output(), 3, 5);
          }
        });
  }

  /** Reduces several tensors of different sizes at once. */
  @ContractTest(needs = OpType.REDUCE_SCATTER_INTO_COALESCED, movesData = true)
  default void reduceScatterIntoCoalescedReducesEachTensor(ContractWorld world) throws Exception {
    int n = world.size();
    List<ReductionCase> small = ReductionCase.exactOfEachKind(world, 3L * n);
    List<ReductionCase> large = ReductionCase.exactOfEachKind(world, 10L * n);
    List<ReductionCase> empty = ReductionCase.exactOfEachKind(world, 0);
    world.run(
        member -> {
          for (int i = 0; i < small.size(); i++) {
            List<ReductionCase> parts = List.of(small.get(i), empty.get(i), large.get(i));
            List<TestTensor> inputs =
                List.of(
                    parts.get(0).input(member, member.layout(Layout.STRIDED), n, 3),
                    parts.get(1).input(member, Layout.CONTIGUOUS, 0),
                    parts.get(2).input(member, member.layout(Layout.TRANSPOSED), 2L * n, 5));
            List<TestTensor> outputs =
                List.of(
                    parts.get(0).output(member, Layout.CONTIGUOUS, 3),
                    parts.get(1).output(member, Layout.CONTIGUOUS, 0),
                    parts.get(2).output(member, member.layout(Layout.NARROWED), 2, 5));
            member
                .group()
                .reduceScatterIntoCoalesced(
                    TestTensor.views(outputs),
                    TestTensor.views(inputs),
                    small.get(i).op(member.rank()),
                    CallOptions.DEFAULT);
            for (int p = 0; p < parts.size(); p++) {
              String what = "reduceScatterIntoCoalesced, tensor " + p;
              parts.get(p).checkPart(what, outputs.get(p), member.rank());
              parts.get(p).checkInputUntouched(what, member, inputs.get(p));
            }
          }
        });
  }

  /** Reduces lists with this rank's input as the output. */
  @ContractTest(needs = OpType.REDUCE_SCATTER, movesData = true)
  default void reduceScatterWorksInPlace(ContractWorld world) throws Exception {
    world.runEach(
        sized(world, world.partSizes()),
        (member, reduction) -> {
          List<TestTensor> inputs =
              reduction.inputParts(member, Layout.CONTIGUOUS, reduction.partNumel());
          TestTensor own = inputs.get(member.rank());
          List<Tensor> views = TestTensor.views(inputs);
          member.group().reduceScatter(own.view(), views, reduction.op(member.rank()));
          String what = "reduceScatter in place";
          reduction.checkPart(what, own, member.rank());
          for (int part = 0; part < member.size(); part++) {
            if (part != member.rank()) {
              reduction.checkInputPartUntouched(what, member, inputs.get(part), part);
            }
          }
        });
  }

  /** Reduces tensors with this rank's part of the input as the output. */
  @ContractTest(needs = OpType.REDUCE_SCATTER_INTO, movesData = true)
  default void reduceScatterIntoWorksInPlace(ContractWorld world) throws Exception {
    world.runEach(
        sized(world, world.partSizes()),
        (member, reduction) -> {
          TestTensor input = reduction.input(member);
          Tensor output = member.ownPart(input);
          member.group().reduceScatterInto(output, input.view(), reduction.op(member.rank()));
          reduction.checkPartInPlace("reduceScatterInto in place", member, input);
        });
  }

  /** Reduces several tensors with this rank's parts of the inputs as the outputs. */
  @ContractTest(needs = OpType.REDUCE_SCATTER_INTO_COALESCED, movesData = true)
  default void reduceScatterIntoCoalescedWorksInPlace(ContractWorld world) throws Exception {
    List<ReductionCase> cases = sized(world, 5, 1024);
    world.run(
        member -> {
          List<TestTensor> inputs = cases.stream().map(each -> each.input(member)).toList();
          List<Tensor> outputs = inputs.stream().map(member::ownPart).toList();
          member
              .group()
              .reduceScatterIntoCoalesced(
                  outputs, TestTensor.views(inputs), ReduceOp.SUM, CallOptions.DEFAULT);
          for (int i = 0; i < cases.size(); i++) {
            cases
                .get(i)
                .checkPartInPlace("reduceScatterIntoCoalesced in place", member, inputs.get(i));
          }
        });
  }

  private static List<ReductionCase> sized(ContractWorld world, long... sizes) {
    return Arrays.stream(sizes).mapToObj(numel -> sum(world, numel)).toList();
  }

  private static ReductionCase sum(ContractWorld world, long partNumel) {
    return ReductionCase.exact(world, DType.FLOAT32, ReduceOp.Kind.SUM, partNumel * world.size());
  }

  private static void checkList(
      Member member, ReductionCase reduction, Layout in, Layout out, long... shape) {
    List<TestTensor> inputs = reduction.inputParts(member, in, shape);
    TestTensor output = reduction.output(member, out, shape);
    member
        .group()
        .reduceScatter(output.view(), TestTensor.views(inputs), reduction.op(member.rank()));
    reduction.checkPart("reduceScatter", output, member.rank());
    for (int part = 0; part < member.size(); part++) {
      reduction.checkInputPartUntouched("reduceScatter", member, inputs.get(part), part);
    }
  }

  private static void checkInto(
      Member member, ReductionCase reduction, Layout in, Layout out, long... shape) {
    long[] whole = shape.clone();
    whole[0] *= member.size();
    TestTensor input = reduction.input(member, in, whole);
    TestTensor output = reduction.output(member, out, shape);
    member.group().reduceScatterInto(output.view(), input.view(), reduction.op(member.rank()));
    reduction.checkPart("reduceScatterInto", output, member.rank());
    reduction.checkInputUntouched("reduceScatterInto", member, input);
  }
}
