package dev.tutti.contracts;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.CallOptions;
import dev.tutti.DType;
import dev.tutti.OpType;
import dev.tutti.ReduceOp;
import dev.tutti.Tensor;
import dev.tutti.Work;
import java.util.ArrayList;
import java.util.List;

/**
 * Tests of all-reduce: every type with every operator against a reference, every layout, odd sizes,
 * and equal bits on all ranks.
 *
 * <p>The tolerance is zero for integers, bool, MIN, MAX, and sums and products of small whole
 * numbers; one rounding for AVG; and (ranks + 1) * epsilon * sum of magnitudes for other real
 * numbers.
 */
public interface AllReduceContract extends GroupContract {
  /** Reduces small whole numbers, for which the result is exact. */
  @ContractTest(needs = OpType.ALL_REDUCE, movesData = true)
  default void allReduceIsExactOnWholeNumbers(ContractWorld world) throws Exception {
    world.runEach(
        ReductionCase.exactOfEachKind(world, 37),
        (member, reduction) -> {
          TestTensor _ = reduce(member, reduction, Layout.CONTIGUOUS, 37);
        });
  }

  /** Reduces real numbers, for which ranks may round but must agree on every bit. */
  @ContractTest(needs = OpType.ALL_REDUCE, movesData = true)
  default void allReduceGivesAllRanksTheSameBits(ContractWorld world) throws Exception {
    for (int numel : new int[] {1, 1023}) {
      List<ReductionCase> cases = ReductionCase.realOfEachKind(world, numel);
      List<List<byte[]>> found =
          world.collect(
              member -> {
                List<byte[]> bits = new ArrayList<>();
                for (ReductionCase reduction : cases) {
                  bits.add(reduce(member, reduction, Layout.CONTIGUOUS, numel).bits());
                }
                return bits;
              });
      for (int i = 0; i < cases.size(); i++) {
        for (int rank = 1; rank < world.size(); rank++) {
          assertThat(found.get(rank).get(i))
              .as("bits of rank %d, allReduce of %s", rank, cases.get(i))
              .isEqualTo(found.get(0).get(i));
        }
      }
    }
  }

  /** Reduces NaN, infinities and zeros of both signs: the bits agree, and sums follow IEEE 754. */
  @ContractTest(needs = OpType.ALL_REDUCE, movesData = true)
  default void allReduceAgreesOnSpecialNumbers(ContractWorld world) throws Exception {
    List<DType> types =
        world.capabilities().reducible().stream().filter(DType::isFloatingPoint).sorted().toList();
    List<List<byte[]>> found =
        world.collect(
            member -> {
              List<byte[]> bits = new ArrayList<>();
              boolean last = member.rank() == member.size() - 1;
              double infinity = Double.POSITIVE_INFINITY;
              for (DType dtype : types) {
                for (ReduceOp op : new ReduceOp[] {ReduceOp.SUM, ReduceOp.MIN, ReduceOp.MAX}) {
                  if (!member.capabilities().canReduce(dtype, op)) {
                    continue;
                  }
                  double[] values = {
                    last ? Double.NaN : 1,
                    last ? infinity : 1,
                    last ? -infinity : infinity,
                    last ? -0.0 : 0.0,
                    -infinity
                  };
                  TestTensor tensor = member.tensor(dtype, values, values.length);
                  member.group().allReduce(tensor.view(), op);
                  if (op.equals(ReduceOp.SUM)) {
                    double mixed = member.size() == 1 ? -infinity : Double.NaN;
                    tensor.assertValues(
                        "SUM of " + dtype.label(), Double.NaN, infinity, mixed, 0, -infinity);
                  }
                  bits.add(tensor.bits());
                }
              }
              return bits;
            });
    for (int rank = 1; rank < world.size(); rank++) {
      assertThat(found.get(rank))
          .as("bits of rank %d", rank)
          .usingRecursiveComparison()
          .isEqualTo(found.get(0));
    }
  }

  /** Wraps integers at the width of their type. */
  @ContractTest(needs = OpType.ALL_REDUCE, movesData = true)
  default void allReduceWrapsIntegers(ContractWorld world) throws Exception {
    int numel = 129;
    world.run(
        member -> {
          for (DType dtype : DType.values()) {
            for (ReduceOp.Kind kind : ReduceOp.Kind.values()) {
              ReduceOp op = TestData.op(kind, 0);
              if (!dtype.isInteger()
                  || kind == ReduceOp.Kind.AVG
                  || !member.capabilities().canReduce(dtype, op)) {
                continue;
              }
              List<long[]> inputs = new ArrayList<>();
              for (int rank = 0; rank < member.size(); rank++) {
                inputs.add(TestData.wrapping(dtype, rank, kind.name().hashCode(), numel));
              }
              Tensor host = Tensor.allocate(dtype, numel);
              for (int i = 0; i < numel; i++) {
                host.setLong(i, inputs.get(member.rank())[i]);
              }
              Tensor tensor = member.scratch(dtype, numel);
              member.world().subject().copyIn(host, tensor);
              member.group().allReduce(tensor, op);
              assertThat(member.world().subject().copyOut(tensor).toLongArray())
                  .as("%s of %s", kind, dtype.label())
                  .isEqualTo(Reference.reduceWrapping(kind, dtype, inputs));
            }
          }
        });
  }

  /** Reduces sizes around the number of ranks and around powers of two. */
  @ContractTest(needs = OpType.ALL_REDUCE, movesData = true)
  default void allReduceTakesAnySize(ContractWorld world) throws Exception {
    List<ReductionCase> cases = new ArrayList<>();
    for (long numel : world.sizes()) {
      for (DType dtype : new DType[] {DType.FLOAT32, DType.INT8, DType.INT64, DType.COMPLEX128}) {
        if (world.capabilities().canReduce(dtype, ReduceOp.SUM)) {
          cases.add(ReductionCase.exact(world, dtype, ReduceOp.Kind.SUM, numel));
        }
      }
    }
    world.runEach(
        cases,
        (member, reduction) -> {
          TestTensor tensor = reduction.input(member);
          member.group().allReduce(tensor.view());
          reduction.check("allReduce", tensor);
        });
  }

  /** Reduces tensors of every memory layout, and writes only their elements. */
  @ContractTest(needs = OpType.ALL_REDUCE, movesData = true)
  default void allReduceTakesAnyLayout(ContractWorld world) throws Exception {
    world.runEach(
        ReductionCase.exactOfEachKind(world, 35),
        (member, reduction) -> {
          for (Layout layout : member.layouts(reduction)) {
            TestTensor _ = reduce(member, reduction, layout, 5, 7);
          }
        });
  }

  /** Reduces tensors without dimensions. */
  @ContractTest(needs = OpType.ALL_REDUCE, movesData = true)
  default void allReduceTakesScalars(ContractWorld world) throws Exception {
    world.runEach(
        ReductionCase.exactOfEachKind(world, 1),
        (member, reduction) -> {
          TestTensor _ = reduce(member, reduction, Layout.CONTIGUOUS);
        });
  }

  /** Reduces a case, and returns the result that it checked. */
  private static TestTensor reduce(
      Member member, ReductionCase reduction, Layout layout, long... shape) {
    TestTensor tensor = reduction.input(member, layout, shape);
    member.group().allReduce(tensor.view(), reduction.op(member.rank()));
    reduction.check("allReduce", tensor);
    return tensor;
  }

  /**
   * Reduces by each algorithm, or refuses it on all ranks alike; a reduction is counted under a
   * path that ends with the algorithm's name.
   */
  @ContractTest(needs = OpType.ALL_REDUCE, movesData = true)
  default void allReduceTakesTheAlgorithmThatItIsAskedFor(ContractWorld world) throws Exception {
    List<ReductionCase> cases = new ArrayList<>();
    for (long numel : new long[] {0, 1, 37, 5000, 300_001}) {
      cases.add(ReductionCase.exact(world, DType.FLOAT32, ReduceOp.Kind.SUM, numel));
    }
    for (ReductionCase reduction : ReductionCase.exactOfEachKind(world, 257)) {
      if (reduction.isOfExtremes()) {
        cases.add(reduction);
      }
    }
    for (DType dtype : new DType[] {DType.FLOAT16, DType.BFLOAT16, DType.FLOAT32, DType.INT8}) {
      if (world.capabilities().canReduce(dtype, ReduceOp.AVG)) {
        cases.add(ReductionCase.exact(world, dtype, ReduceOp.Kind.AVG, 20_001));
      }
    }
    if (world.capabilities().canReduce(DType.FLOAT32, ReduceOp.MIN)) {
      cases.add(ReductionCase.exact(world, DType.FLOAT32, ReduceOp.Kind.MIN, 20_001));
    }
    List<List<Boolean>> done =
        world.collect(
            member -> {
              List<Boolean> taken = new ArrayList<>();
              for (String algorithm : member.capabilities().algorithms()) {
                for (ReductionCase reduction : cases) {
                  taken.add(Algorithms.isTaken(member, algorithm, reduction));
                }
              }
              member.assertUsable();
              return taken;
            });
    for (int rank = 1; rank < world.size(); rank++) {
      assertThat(done.get(rank)).as("what rank %d did", rank).isEqualTo(done.get(0));
    }
  }

  /** Refuses algorithms for sparse tensors and lists. */
  @ContractTest(needs = OpType.ALL_REDUCE_COALESCED)
  default void allReduceCoalescedTakesNoAlgorithm(ContractWorld world) throws Exception {
    Refusals.check(
        world,
        (member, group, refused) -> {
          CallOptions ring = CallOptions.DEFAULT.withAlgorithm("ring");
          List<Tensor> tensors = List.of(member.scratch(DType.FLOAT32, 2));
          refused.unsupported("ring", () -> group.allReduceCoalesced(tensors, ReduceOp.SUM, ring));
        });
  }

  /** Reduces a list of tensors of different sizes and layouts as one operation. */
  @ContractTest(needs = OpType.ALL_REDUCE_COALESCED, movesData = true)
  default void allReduceCoalescedReducesEachTensor(ContractWorld world) throws Exception {
    List<ReductionCase> small = ReductionCase.exactOfEachKind(world, 3);
    List<ReductionCase> large = ReductionCase.exactOfEachKind(world, 35);
    List<ReductionCase> empty = ReductionCase.exactOfEachKind(world, 0);
    world.run(
        member -> {
          for (int i = 0; i < small.size(); i++) {
            List<TestTensor> tensors =
                List.of(
                    small.get(i).input(member),
                    large.get(i).input(member, member.layout(Layout.TRANSPOSED), 7, 5),
                    empty.get(i).input(member),
                    small.get(i).input(member, member.layout(Layout.STRIDED), 3));
            ReduceOp op = small.get(i).op(member.rank());
            Work work =
                member
                    .group()
                    .allReduceCoalesced(TestTensor.views(tensors), op, CallOptions.DEFAULT);
            work.await();
            assertThat(work.isSuccess()).isTrue();
            small.get(i).check("allReduceCoalesced", tensors.get(0));
            large.get(i).check("allReduceCoalesced", tensors.get(1));
            empty.get(i).check("allReduceCoalesced", tensors.get(2));
            small.get(i).check("allReduceCoalesced", tensors.get(3));
          }
        });
  }
}
