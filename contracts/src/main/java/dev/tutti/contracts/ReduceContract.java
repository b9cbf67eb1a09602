package dev.tutti.contracts;

import dev.tutti.DType;
import dev.tutti.OpType;
import dev.tutti.ReduceOp;
import java.util.ArrayList;
import java.util.List;

/**
 * Tests of reduce to one rank: every type, operator and root, with tolerances as for all-reduce.
 */
public interface ReduceContract extends GroupContract {
  /** Reduces every type with every operator to every root. */
  @ContractTest(needs = OpType.REDUCE, movesData = true)
  default void reduceIsExactOnWholeNumbersToEveryRoot(ContractWorld world) throws Exception {
    world.runEach(
        ReductionCase.exactOfEachKind(world, 37),
        (member, reduction) -> {
          for (int root : world.roots()) {
            checkReduce(member, reduction, root, Layout.CONTIGUOUS, 37);
          }
        });
  }

  /** Reduces real numbers within the rounding tolerance. */
  @ContractTest(needs = OpType.REDUCE, movesData = true)
  default void reduceOfRealNumbersIsNearTheReference(ContractWorld world) throws Exception {
    world.runEach(
        ReductionCase.realOfEachKind(world, 1023),
        (member, reduction) ->
            checkReduce(member, reduction, member.size() - 1, Layout.CONTIGUOUS, 1023));
  }

  /** Reduces sizes around the number of ranks and around powers of two. */
  @ContractTest(needs = OpType.REDUCE, movesData = true)
  default void reduceTakesAnySize(ContractWorld world) throws Exception {
    int n = world.size();
    List<ReductionCase> cases = new ArrayList<>();
    long[] sizes = world.sizes();
    for (long numel : sizes) {
      cases.add(ReductionCase.exact(world, DType.FLOAT32, ReduceOp.Kind.SUM, numel));
    }
    world.run(
        member -> {
          for (int i = 0; i < sizes.length; i++) {
            checkReduce(member, cases.get(i), i % n, Layout.CONTIGUOUS, sizes[i]);
          }
        });
  }

  /** Reduces tensors of every memory layout. */
  @ContractTest(needs = OpType.REDUCE, movesData = true)
  default void reduceTakesAnyLayout(ContractWorld world) throws Exception {
    world.runEach(
        ReductionCase.exactOfEachKind(world, 35),
        (member, reduction) -> {
          for (Layout layout : member.layouts(reduction)) {
            checkReduce(member, reduction, 0, layout, 5, 7);
          }
        });
  }

  private static void checkReduce(
      Member member, ReductionCase reduction, int root, Layout layout, long... shape) {
    TestTensor tensor = reduction.input(member, layout, shape);
    member.group().reduce(tensor.view(), reduction.op(member.rank()), root);
    if (member.rank() == root) {
      reduction.check("reduce to root " + root, tensor);
    } else {
      tensor.assertGapsUntouched("reduce to root " + root + ", another rank's tensor");
    }
  }
}
