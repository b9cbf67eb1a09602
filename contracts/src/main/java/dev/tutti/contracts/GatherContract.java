package dev.tutti.contracts;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.CallOptions;
import dev.tutti.DType;
import dev.tutti.OpType;
import dev.tutti.Tensor;
import java.util.ArrayList;
import java.util.List;

/** Tests of gather and scatter: every type, root, size and layout. */
public interface GatherContract extends GroupContract {
  /** Gathers every type on every root; other ranks pass no outputs. */
  @ContractTest(needs = OpType.GATHER, movesData = true)
  default void gatherCollectsEveryTypeOnEveryRoot(ContractWorld world) throws Exception {
    world.run(
        member -> {
          for (int root : world.roots()) {
            Moves.everyType(member, gatherOn(root));
          }
        });
  }

  /** Gathers into new memory on all ranks, and on each root. */
  @ContractTest(
      onHost = true,
      needs = {OpType.ALL_GATHER_INTO, OpType.GATHER},
      movesData = true)
  default void gathersIntoNewMemory(ContractWorld world) throws Exception {
    world.run(
        member -> {
          Tensor input = Tensor.of(member.rank(), -member.rank(), 7).view(3, 1);
          List<Tensor> all = member.group().allGather(input);
          assertGathered(member, all);
          for (int root : world.roots()) {
            List<Tensor> onRoot = member.group().gather(input, root);
            if (member.rank() == root) {
              assertGathered(member, onRoot);
            } else {
              assertThat(onRoot).isEmpty();
            }
          }
        });
  }

  private static void assertGathered(Member member, List<Tensor> parts) {
    assertThat(parts).hasSize(member.size());
    for (int rank = 0; rank < parts.size(); rank++) {
      assertThat(parts.get(rank).shape()).containsExactly(3, 1);
      assertThat(parts.get(rank).toIntArray()).containsExactly(rank, -rank, 7);
    }
  }

  /** Gathers tensors of every size and layout. */
  @ContractTest(needs = OpType.GATHER, movesData = true)
  default void gatherTakesAnySizeAndLayout(ContractWorld world) throws Exception {
    world.run(
        member -> {
          Moves.Check gather = gatherOn(member.size() - 1);
          Moves.anySizeAndLayout(member, gather);
          gather.run(member, Layout.CONTIGUOUS, Layout.CONTIGUOUS, DType.FLOAT32);
        });
  }

  /** Scatters every type from every root; other ranks pass no inputs. */
  @ContractTest(needs = OpType.SCATTER, movesData = true)
  default void scatterHandsOutEveryTypeFromEveryRoot(ContractWorld world) throws Exception {
    world.run(
        member -> {
          for (int root : world.roots()) {
            Moves.everyType(member, scatterFrom(root));
          }
        });
  }

  /** Scatters tensors of every size and layout. */
  @ContractTest(needs = OpType.SCATTER, movesData = true)
  default void scatterTakesAnySizeAndLayout(ContractWorld world) throws Exception {
    world.run(
        member -> {
          Moves.Check scatter = scatterFrom(member.size() - 1);
          Moves.anySizeAndLayout(member, scatter);
          scatter.run(member, Layout.CONTIGUOUS, Layout.CONTIGUOUS, DType.FLOAT32);
        });
  }

  /** Gathers with the root's input already in its output. */
  @ContractTest(needs = OpType.GATHER, movesData = true)
  default void gatherWorksInPlace(ContractWorld world) throws Exception {
    world.run(
        member -> {
          for (int root : world.roots()) {
            for (long numel : world.partSizes()) {
              TestTensor input = member.toMove(Layout.CONTIGUOUS, DType.INT32, root, numel);
              List<TestTensor> outputs = new ArrayList<>();
              if (member.rank() == root) {
                outputs.addAll(member.blanks(Layout.CONTIGUOUS, DType.INT32, numel));
                outputs.set(root, input);
              }
              member.group().gather(TestTensor.views(outputs), input.view(), root);
              TestTensor.assertMovedFromEach("gather in place from rank", outputs, root);
            }
          }
        });
  }

  /** Scatters with the root's output being its input. */
  @ContractTest(needs = OpType.SCATTER, movesData = true)
  default void scatterWorksInPlace(ContractWorld world) throws Exception {
    world.run(
        member -> {
          for (int root : world.roots()) {
            for (long numel : world.partSizes()) {
              List<TestTensor> inputs =
                  toScatter(member, Layout.CONTIGUOUS, DType.INT32, root, numel);
              TestTensor output =
                  member.rank() == root
                      ? inputs.get(root)
                      : member.blank(Layout.CONTIGUOUS, DType.INT32, numel);
              member.group().scatter(output.view(), TestTensor.views(inputs), root);
              output.assertMoved("scatter in place", member.rank(), root);
              TestTensor.assertMovedFromEach("scatter in place, input for rank", inputs, root);
            }
          }
        });
  }

  private static Moves.Check gatherOn(int root) {
    return (member, in, out, dtype, shape) -> {
      TestTensor input = member.toMove(in, dtype, root, shape);
      List<TestTensor> outputs =
          member.rank() == root ? member.blanks(out, dtype, shape) : List.of();
      member
          .group()
          .gather(TestTensor.views(outputs), input.view(), root, CallOptions.DEFAULT)
          .await();
      String what = "gather of " + dtype.label() + " on root " + root;
      TestTensor.assertMovedFromEach(what + " from rank", outputs, root);
      input.assertMoved(what + ", input", member.rank(), root);
    };
  }

  private static Moves.Check scatterFrom(int root) {
    return (member, in, out, dtype, shape) -> {
      TestTensor output = member.blank(out, dtype, shape);
      List<TestTensor> inputs = toScatter(member, in, dtype, root, shape);
      member
          .group()
          .scatter(output.view(), TestTensor.views(inputs), root, CallOptions.DEFAULT)
          .await();
      String what = "scatter of " + dtype.label() + " from root " + root;
      output.assertMoved(what, member.rank(), root);
      TestTensor.assertMovedFromEach(what + ", input for rank", inputs, root);
    };
  }

  /** Returns the inputs of the root: what each rank is to have. */
  private static List<TestTensor> toScatter(
      Member member, Layout layout, DType dtype, int root, long... shape) {
    List<TestTensor> inputs = new ArrayList<>();
    for (int rank = 0; member.rank() == root && rank < member.size(); rank++) {
      double[] part = TestData.toMove(dtype, rank, root, TestData.numel(shape));
      inputs.add(member.tensor(layout, dtype, part, shape));
    }
    return inputs;
  }
}
