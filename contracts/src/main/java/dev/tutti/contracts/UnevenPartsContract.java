package dev.tutti.contracts;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.Capabilities.Feature;
import dev.tutti.DType;
import dev.tutti.OpType;
import dev.tutti.ReduceOp;
import dev.tutti.Tensor;
import dev.tutti.contracts.Member.LayoutPair;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.stream.Collectors;
import java.util.stream.DoubleStream;
import java.util.stream.IntStream;

/**
 * Tests of all-gather and reduce-scatter with a number of rows of its own for each rank, of lists
 * and of one tensor. All have no rows, one row, or a prime number of them.
 */
public interface UnevenPartsContract extends GroupContract {
  /** Gathers lists of parts of every type, and of any size. */
  @ContractTest(needs = OpType.ALL_GATHER, movesData = true, features = Feature.UNEVEN_PARTS)
  default void allGatherTakesUnevenParts(ContractWorld world) throws Exception {
    world.run(
        member -> {
          for (DType dtype : member.movable()) {
            gatherList(member, dtype, primes(member.size()));
          }
          for (long[] splits : splits(world)) {
            gatherList(member, DType.INT32, splits);
          }
        });
  }

  /** Gathers rows of every type, any number and any layout into one tensor. */
  @ContractTest(needs = OpType.ALL_GATHER, movesData = true, features = Feature.UNEVEN_PARTS)
  default void allGatherIntoTakesAnyNumberOfRows(ContractWorld world) throws Exception {
    world.run(
        member -> {
          long[] primes = primes(member.size());
          for (DType dtype : member.movable()) {
            gatherRows(member, Layout.CONTIGUOUS, Layout.CONTIGUOUS, dtype, primes);
          }
          for (long[] splits : splits(world)) {
            gatherRows(member, Layout.CONTIGUOUS, Layout.CONTIGUOUS, DType.INT32, splits);
          }
          for (LayoutPair pair : member.layoutPairs()) {
            gatherRows(member, pair.input(), pair.output(), DType.FLOAT32, primes);
          }
        });
  }

  /** Gathers rows that are already at their place in the output. */
  @ContractTest(needs = OpType.ALL_GATHER, movesData = true, features = Feature.UNEVEN_PARTS)
  default void allGatherIntoOfRowsWorksInPlace(ContractWorld world) throws Exception {
    world.run(
        member -> {
          for (long[] splits : splits(world)) {
            int rank = member.rank();
            double[] values = TestData.constant(DType.INT32, 1, sum(splits));
            double[] own = TestData.toMove(DType.INT32, rank, splits[rank], splits[rank]);
            System.arraycopy(own, 0, values, start(splits, rank), own.length);
            TestTensor output = member.tensor(DType.INT32, values, sum(splits));
            Tensor input = rows(output.view(), splits, rank);
            member.group().allGatherInto(output.view(), input, splits);
            output.assertValues(
                "allGatherInto in place of " + Arrays.toString(splits),
                moved(member, DType.INT32, splits, 1));
          }
        });
  }

  /** Reduces lists of parts of any size. */
  @ContractTest(needs = OpType.REDUCE_SCATTER, movesData = true, features = Feature.UNEVEN_PARTS)
  default void reduceScatterTakesUnevenParts(ContractWorld world) throws Exception {
    for (long[] splits : splits(world)) {
      ReductionCase reduction = sum(world, splits);
      world.run(
          member -> {
            List<TestTensor> inputs = reduction.inputParts(member, splits);
            TestTensor output = reduction.output(member, Layout.CONTIGUOUS, splits[member.rank()]);
            member
                .group()
                .reduceScatter(
                    output.view(), TestTensor.views(inputs), reduction.op(member.rank()));
            reduction.checkPart("uneven reduceScatter", output, splits, member.rank());
          });
    }
  }

  /** Reduces rows of every type with every operator. */
  @ContractTest(needs = OpType.REDUCE_SCATTER, movesData = true, features = Feature.UNEVEN_PARTS)
  default void reduceScatterIntoOfRowsIsExactOnWholeNumbers(ContractWorld world) throws Exception {
    long[] splits = primes(world.size());
    world.runEach(
        ReductionCase.exactOfEachKind(world, sum(splits)),
        (member, reduction) ->
            reduceRows(member, reduction, Layout.CONTIGUOUS, Layout.CONTIGUOUS, splits));
  }

  /** Reduces any number of rows of any layout. */
  @ContractTest(needs = OpType.REDUCE_SCATTER, movesData = true, features = Feature.UNEVEN_PARTS)
  default void reduceScatterIntoTakesAnyNumberOfRows(ContractWorld world) throws Exception {
    for (long[] splits : splits(world)) {
      ReductionCase reduction = sum(world, splits);
      world.run(
          member -> reduceRows(member, reduction, Layout.CONTIGUOUS, Layout.CONTIGUOUS, splits));
    }
    long[] splits = primes(world.size());
    ReductionCase layouts = sum(world, splits);
    world.run(
        member -> {
          for (LayoutPair pair : member.layoutPairs()) {
            reduceRows(member, layouts, pair.input(), pair.output(), splits);
          }
        });
  }

  /** Reduces rows with this rank's rows of the input as the output. */
  @ContractTest(needs = OpType.REDUCE_SCATTER, movesData = true, features = Feature.UNEVEN_PARTS)
  default void reduceScatterIntoOfRowsWorksInPlace(ContractWorld world) throws Exception {
    for (long[] splits : splits(world)) {
      ReductionCase reduction = sum(world, splits);
      world.run(
          member -> {
            TestTensor input = reduction.input(member);
            Tensor output = rows(input.view(), splits, member.rank());
            member
                .group()
                .reduceScatterInto(output, input.view(), splits, reduction.op(member.rank()));
            reduction.checkPartInPlace("reduceScatterInto in place", member, input, splits);
          });
    }
  }

  /** Runs as the operation for equal parts where no numbers are given. */
  @ContractTest(
      needs = {OpType.ALL_GATHER_INTO, OpType.REDUCE_SCATTER_INTO},
      movesData = true)
  default void withoutNumbersOfRowsPartsAreEqual(ContractWorld world) throws Exception {
    long[] splits = new long[world.size()];
    Arrays.fill(splits, 3);
    ReductionCase reduction = sum(world, splits);
    world.run(
        member -> {
          TestTensor gathered = member.blank(Layout.CONTIGUOUS, DType.INT32, sum(splits));
          TestTensor own = member.toMove(Layout.CONTIGUOUS, DType.INT32, 3, 3);
          member.group().allGatherInto(gathered.view(), own.view(), new long[0]);
          gathered.assertValues("allGatherInto", moved(member, DType.INT32, splits, 1));
          TestTensor input = reduction.input(member);
          TestTensor output = reduction.output(member, Layout.CONTIGUOUS, 3);
          member
              .group()
              .reduceScatterInto(
                  output.view(), input.view(), new long[0], reduction.op(member.rank()));
          reduction.checkPart("reduceScatterInto", output, splits, member.rank());
        });
  }

  /** Records the numbers of rows. */
  @ContractTest(
      needs = {OpType.ALL_GATHER, OpType.REDUCE_SCATTER},
      movesData = true,
      features = Feature.UNEVEN_PARTS)
  default void theFlightRecordHasTheNumbersOfRows(ContractWorld world) throws Exception {
    long[] splits = primes(world.size());
    String sizes =
        Arrays.stream(splits)
            .mapToObj(rows -> "[" + rows + "]")
            .collect(Collectors.joining(",", "_sizes\":[", "]"));
    world.run(
        member -> {
          Tensor whole = member.floats(new double[(int) sum(splits)]).view();
          Tensor part = member.floats(new double[(int) splits[member.rank()]]).view();
          member.group().allGatherInto(whole, part, splits);
          member.group().reduceScatterInto(part, whole, splits, ReduceOp.SUM);
          assertThat(member.group().diagnostics().flightRecord())
              .contains("nccl:all_gather", "nccl:reduce_scatter")
              .contains("output" + sizes, "input" + sizes);
        });
  }

  /** Refuses numbers of rows that do not fit the tensors. */
  @ContractTest(needs = {OpType.ALL_GATHER, OpType.REDUCE_SCATTER})
  default void badNumbersOfRowsAreRefused(ContractWorld world) throws Exception {
    long[] splits = new long[world.size()];
    Arrays.fill(splits, 2);
    long[] negative = splits.clone();
    negative[0] = -2;
    long[] more = splits.clone();
    more[0] = 3;
    long[] tooMany = Arrays.copyOf(splits, splits.length + 1);
    Refusals.check(
        world,
        (member, group, refused) -> {
          Tensor part = member.scratch(DType.FLOAT32, 2);
          Tensor longer = member.scratch(DType.FLOAT32, 3);
          Tensor ints = member.scratch(DType.INT32, 2);
          Tensor all = member.scratch(DType.FLOAT32, sum(splits));
          for (long[] bad : List.of(negative, more, tooMany)) {
            refused.badArgument("outputSplits", () -> group.allGatherInto(all, part, bad));
            refused.badArgument(
                "inputSplits", () -> group.reduceScatterInto(part, all, bad, ReduceOp.SUM));
          }
          for (Tensor bad : List.of(longer, ints)) {
            refused.badArgument("input must", () -> group.allGatherInto(all, bad, splits));
            refused.badArgument(
                "output must", () -> group.reduceScatterInto(bad, all, splits, ReduceOp.SUM));
          }
        });
  }

  /** Returns numbers of rows for each rank: none, one, and primes. */
  private static long[] primes(int size) {
    int[] primes = {3, 0, 1, 7, 2, 13, 5, 11};
    return IntStream.range(0, size).mapToLong(rank -> primes[rank % primes.length]).toArray();
  }

  private static List<long[]> splits(ContractWorld world) {
    int size = world.size();
    List<long[]> all = new ArrayList<>();
    all.add(primes(size));
    all.add(new long[size]);
    for (long rows : world.partSizes()) {
      // Those of the last rank alone, and those of all ranks, about as many each.
      all.add(IntStream.range(0, size).mapToLong(r -> r == size - 1 ? rows : 0).toArray());
      all.add(IntStream.range(0, size).mapToLong(r -> rows - rows * r / (10L * size)).toArray());
    }
    if (!world.isLarge()) {
      all.add(IntStream.range(0, size).mapToLong(r -> r == 0 ? 300_007 : r % 2).toArray());
    }
    return all;
  }

  private static ReductionCase sum(ContractWorld world, long[] splits) {
    return ReductionCase.exact(world, DType.FLOAT32, ReduceOp.Kind.SUM, sum(splits));
  }

  private static void gatherList(Member member, DType dtype, long[] splits) {
    List<TestTensor> outputs =
        Arrays.stream(splits)
            .mapToObj(rows -> member.blank(Layout.CONTIGUOUS, dtype, rows))
            .toList();
    long own = splits[member.rank()];
    TestTensor input = member.toMove(Layout.CONTIGUOUS, dtype, own, own);
    member.group().allGather(TestTensor.views(outputs), input.view());
    for (int rank = 0; rank < splits.length; rank++) {
      outputs
          .get(rank)
          .assertMoved(
              "uneven allGather of %s %s from rank %s"
                  .formatted(dtype.label(), Arrays.toString(splits), rank),
              rank,
              splits[rank]);
    }
  }

  private static void gatherRows(Member member, Layout in, Layout out, DType dtype, long[] splits) {
    int rank = member.rank();
    TestTensor output = member.blank(out, dtype, sum(splits), 2);
    TestTensor input = member.toMove(in, dtype, 2 * splits[rank], splits[rank], 2);
    member.group().allGatherInto(output.view(), input.view(), splits);
    String what = "allGatherInto of " + dtype.label() + ' ' + Arrays.toString(splits);
    output.assertValues(what, moved(member, dtype, splits, 2));
    input.assertMoved(what + ", input", rank, 2 * splits[rank]);
  }

  private static void reduceRows(
      Member member, ReductionCase reduction, Layout in, Layout out, long[] splits) {
    TestTensor input = reduction.input(member, in, sum(splits), 1);
    TestTensor output = reduction.output(member, out, splits[member.rank()], 1);
    member
        .group()
        .reduceScatterInto(output.view(), input.view(), splits, reduction.op(member.rank()));
    String what = "reduceScatterInto of " + Arrays.toString(splits);
    reduction.checkPart(what, output, splits, member.rank());
    reduction.checkInputUntouched(what, member, input);
  }

  /** Returns what all ranks have to move, in rank order. */
  private static double[] moved(Member member, DType dtype, long[] splits, int columns) {
    return IntStream.range(0, member.size())
        .mapToObj(
            rank -> TestData.toMove(dtype, rank, columns * splits[rank], columns * splits[rank]))
        .flatMapToDouble(DoubleStream::of)
        .toArray();
  }

  private static Tensor rows(Tensor whole, long[] splits, int rank) {
    return whole.narrow(0, start(splits, rank), splits[rank]);
  }

  private static int start(long[] splits, int rank) {
    return Math.toIntExact(Arrays.stream(splits, 0, rank).sum());
  }

  private static long sum(long[] splits) {
    return Arrays.stream(splits).sum();
  }
}
