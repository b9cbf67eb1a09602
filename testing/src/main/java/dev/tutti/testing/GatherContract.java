package dev.tutti.testing;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.CallOptions;
import dev.tutti.Capabilities.Feature;
import dev.tutti.DType;
import dev.tutti.OpType;
import dev.tutti.Tensor;
import dev.tutti.testing.Member.LayoutPair;
import java.util.ArrayList;
import java.util.List;

/** Tests of gather and scatter: every type, root, size and layout. */
public interface GatherContract extends GroupContract {
  /** Gathers every type on every root; other ranks pass no outputs. */
  @ContractTest(needs = OpType.GATHER, features = Feature.REAL_RESULTS)
  default void gatherCollectsEveryTypeOnEveryRoot(ContractWorld world) throws Exception {
    world.run(
        member -> {
          for (DType dtype : member.movable()) {
            for (int root : world.roots()) {
              checkGather(member, Layout.CONTIGUOUS, Layout.CONTIGUOUS, dtype, root, 7);
            }
          }
        });
  }

  /** Gathers into new memory on all ranks, and on each root. */
  @ContractTest(
      onHost = true,
      needs = {OpType.ALL_GATHER_INTO, OpType.GATHER},
      features = Feature.REAL_RESULTS)
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
  @ContractTest(needs = OpType.GATHER, features = Feature.REAL_RESULTS)
  default void gatherTakesAnySizeAndLayout(ContractWorld world) throws Exception {
    world.run(
        member -> {
          int root = member.size() - 1;
          for (long numel : world.partSizes()) {
            checkGather(member, Layout.CONTIGUOUS, Layout.CONTIGUOUS, DType.INT32, root, numel);
          }
          checkGather(member, Layout.CONTIGUOUS, Layout.CONTIGUOUS, DType.FLOAT32, root);
          for (LayoutPair pair : member.layoutPairs()) {
            checkGather(member, pair.input(), pair.output(), DType.FLOAT32, root, 3, 5);
          }
        });
  }

  /** Scatters every type from every root; other ranks pass no inputs. */
  @ContractTest(needs = OpType.SCATTER, features = Feature.REAL_RESULTS)
  default void scatterHandsOutEveryTypeFromEveryRoot(ContractWorld world) throws Exception {
    world.run(
        member -> {
          for (DType dtype : member.movable()) {
            for (int root : world.roots()) {
              checkScatter(member, Layout.CONTIGUOUS, Layout.CONTIGUOUS, dtype, root, 7);
            }
          }
        });
  }

  /** Scatters tensors of every size and layout. */
  @ContractTest(needs = OpType.SCATTER, features = Feature.REAL_RESULTS)
  default void scatterTakesAnySizeAndLayout(ContractWorld world) throws Exception {
    world.run(
        member -> {
          int root = member.size() - 1;
          for (long numel : world.partSizes()) {
            checkScatter(member, Layout.CONTIGUOUS, Layout.CONTIGUOUS, DType.INT32, root, numel);
          }
          checkScatter(member, Layout.CONTIGUOUS, Layout.CONTIGUOUS, DType.FLOAT32, root);
          for (LayoutPair pair : member.layoutPairs()) {
            checkScatter(member, pair.input(), pair.output(), DType.FLOAT32, root, 3, 5);
          }
        });
  }

  /** Gathers with the root's input already in its output. */
  @ContractTest(needs = OpType.GATHER, features = Feature.REAL_RESULTS)
  default void gatherWorksInPlace(ContractWorld world) throws Exception {
    world.run(
        member -> {
          for (int root : world.roots()) {
            for (long numel : world.partSizes()) {
              TestTensor input =
                  member.tensor(DType.INT32, part(DType.INT32, member.rank(), root, numel), numel);
              List<TestTensor> outputs = new ArrayList<>();
              for (int rank = 0; member.rank() == root && rank < member.size(); rank++) {
                TestTensor blank = member.blank(Layout.CONTIGUOUS, DType.INT32, numel);
                outputs.add(rank == root ? input : blank);
              }
              member.group().gather(views(outputs), input.view(), root);
              for (int rank = 0; rank < outputs.size(); rank++) {
                outputs
                    .get(rank)
                    .assertValues(
                        "gather in place from " + rank, part(DType.INT32, rank, root, numel));
              }
            }
          }
        });
  }

  /** Scatters with the root's output being its input. */
  @ContractTest(needs = OpType.SCATTER, features = Feature.REAL_RESULTS)
  default void scatterWorksInPlace(ContractWorld world) throws Exception {
    world.run(
        member -> {
          for (int root : world.roots()) {
            for (long numel : world.partSizes()) {
              List<TestTensor> inputs = new ArrayList<>();
              for (int rank = 0; member.rank() == root && rank < member.size(); rank++) {
                inputs.add(member.tensor(DType.INT32, part(DType.INT32, rank, root, numel), numel));
              }
              TestTensor output =
                  member.rank() == root
                      ? inputs.get(root)
                      : member.blank(Layout.CONTIGUOUS, DType.INT32, numel);
              member.group().scatter(output.view(), views(inputs), root);
              output.assertValues(
                  "scatter in place", part(DType.INT32, member.rank(), root, numel));
              for (int rank = 0; rank < inputs.size(); rank++) {
                inputs
                    .get(rank)
                    .assertValues("scatter in place, inputs", part(DType.INT32, rank, root, numel));
              }
            }
          }
        });
  }

  private static void checkGather(
      Member member, Layout in, Layout out, DType dtype, int root, long... shape) {
    double[] mine = part(dtype, member.rank(), root, shape);
    TestTensor input = member.tensor(in, dtype, mine, shape);
    List<TestTensor> outputs = new ArrayList<>();
    if (member.rank() == root) {
      for (int rank = 0; rank < member.size(); rank++) {
        outputs.add(member.blank(out, dtype, shape));
      }
    }
    member.group().gather(views(outputs), input.view(), root, CallOptions.DEFAULT).await();
    String what = "gather of " + dtype.label() + " on root " + root;
    for (int rank = 0; rank < outputs.size(); rank++) {
      outputs.get(rank).assertValues(what + " from " + rank, part(dtype, rank, root, shape));
    }
    input.assertValues(what + ", input", mine);
  }

  private static void checkScatter(
      Member member, Layout in, Layout out, DType dtype, int root, long... shape) {
    TestTensor output = member.blank(out, dtype, shape);
    List<TestTensor> inputs = new ArrayList<>();
    if (member.rank() == root) {
      for (int rank = 0; rank < member.size(); rank++) {
        inputs.add(member.tensor(in, dtype, part(dtype, rank, root, shape), shape));
      }
    }
    member.group().scatter(output.view(), views(inputs), root, CallOptions.DEFAULT).await();
    String what = "scatter of " + dtype.label() + " from root " + root;
    output.assertValues(what, part(dtype, member.rank(), root, shape));
    for (int rank = 0; rank < inputs.size(); rank++) {
      inputs.get(rank).assertValues(what + ", inputs", part(dtype, rank, root, shape));
    }
  }

  private static double[] part(DType dtype, int rank, int seed, long... shape) {
    long numel = 1;
    for (long size : shape) {
      numel *= size;
    }
    return TestData.toMove(dtype, rank, seed, numel);
  }

  private static List<Tensor> views(List<TestTensor> tensors) {
    return tensors.stream().map(TestTensor::view).toList();
  }
}
