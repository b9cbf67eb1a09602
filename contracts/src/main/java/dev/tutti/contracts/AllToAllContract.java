package dev.tutti.contracts;

import dev.tutti.DType;
import dev.tutti.OpType;
import dev.tutti.Tensor;
import java.util.ArrayList;
import java.util.List;

/** Tests of all-to-all of lists, and of one tensor with equal and unequal splits. */
public interface AllToAllContract extends GroupContract {
  /** Exchanges lists of every type. */
  @ContractTest(needs = OpType.ALL_TO_ALL, movesData = true)
  default void allToAllExchangesEveryType(ContractWorld world) throws Exception {
    world.run(member -> Moves.everyType(member, AllToAllContract::checkList));
  }

  /** Exchanges lists of tensors of every size and layout. */
  @ContractTest(needs = OpType.ALL_TO_ALL, movesData = true)
  default void allToAllTakesAnySizeAndLayout(ContractWorld world) throws Exception {
    world.run(
        member -> {
          Moves.anySizeAndLayout(member, AllToAllContract::checkList);
          checkList(member, Layout.CONTIGUOUS, Layout.CONTIGUOUS, DType.FLOAT32);
        });
  }

  /**
   * Exchanges lists of tensors whose sizes differ between the pairs of ranks, some of them empty.
   */
  @ContractTest(needs = OpType.ALL_TO_ALL, movesData = true)
  default void allToAllTakesUnevenTensors(ContractWorld world) throws Exception {
    world.run(
        member -> {
          int n = member.size();
          List<Tensor> inputs = new ArrayList<>();
          List<TestTensor> outputs = new ArrayList<>();
          for (int peer = 0; peer < n; peer++) {
            inputs.add(member.floats(sent(member.rank(), peer, n)).view());
            outputs.add(
                member.blank(Layout.CONTIGUOUS, DType.FLOAT32, rows(peer, member.rank(), n)));
          }
          member.group().allToAll(TestTensor.views(outputs), inputs);
          for (int peer = 0; peer < n; peer++) {
            outputs.get(peer).assertValues("allToAll from " + peer, sent(peer, member.rank(), n));
          }
        });
  }

  /** Exchanges equal parts of one tensor of every type and layout. */
  @ContractTest(needs = OpType.ALL_TO_ALL_SINGLE, movesData = true)
  default void allToAllSingleExchangesEqualParts(ContractWorld world) throws Exception {
    world.run(
        member -> {
          Moves.Check equalParts =
              (self, in, out, dtype, shape) -> checkEqualParts(self, in, out, dtype, shape[0]);
          Moves.everyType(member, equalParts);
          Moves.anySizeAndLayout(member, equalParts);
        });
  }

  /** Exchanges unequal splits, some of them zero; splits count rows of dimension 0. */
  @ContractTest(needs = OpType.ALL_TO_ALL_SINGLE, movesData = true)
  default void allToAllSingleTakesUnevenSplits(ContractWorld world) throws Exception {
    world.run(
        member -> {
          int n = member.size();
          int width = 3;
          long[] inputSplits = new long[n];
          long[] outputSplits = new long[n];
          List<Double> sent = new ArrayList<>();
          List<Double> expected = new ArrayList<>();
          for (int peer = 0; peer < n; peer++) {
            inputSplits[peer] = rows(member.rank(), peer, n);
            outputSplits[peer] = rows(peer, member.rank(), n);
            addRows(sent, member.rank(), peer, n, width);
            addRows(expected, peer, member.rank(), n, width);
          }
          for (Layout layout : member.layouts()) {
            TestTensor input =
                member.tensor(layout, DType.FLOAT32, toArray(sent), sent.size() / width, width);
            TestTensor output = member.blank(layout, DType.FLOAT32, expected.size() / width, width);
            member.group().allToAllSingle(output.view(), input.view(), outputSplits, inputSplits);
            output.assertValues("allToAllSingle with splits", toArray(expected));
            input.assertValues("allToAllSingle with splits, input", toArray(sent));
          }
        });
  }

  private static void checkList(Member member, Layout in, Layout out, DType dtype, long... shape) {
    List<TestTensor> inputs =
        member.ranks().stream().map(peer -> member.toMove(in, dtype, peer, shape)).toList();
    List<TestTensor> outputs = member.blanks(out, dtype, shape);
    member.group().allToAll(TestTensor.views(outputs), TestTensor.views(inputs));
    String what = "allToAll of " + dtype.label();
    TestTensor.assertMovedFromEach(what + " from rank", outputs, member.rank());
    for (int peer = 0; peer < member.size(); peer++) {
      inputs.get(peer).assertMoved(what + ", inputs[" + peer + "]", member.rank(), peer);
    }
  }

  private static void checkEqualParts(
      Member member, Layout in, Layout out, DType dtype, long rows) {
    int n = member.size();
    int length = TestData.reals(dtype, rows * 2);
    double[] sent = new double[length * n];
    double[] expected = new double[length * n];
    for (int peer = 0; peer < n; peer++) {
      double[] there = TestData.toMove(dtype, member.rank(), peer, rows * 2);
      double[] here = TestData.toMove(dtype, peer, member.rank(), rows * 2);
      System.arraycopy(there, 0, sent, peer * length, length);
      System.arraycopy(here, 0, expected, peer * length, length);
    }
    TestTensor input = member.tensor(in, dtype, sent, rows * n, 2);
    TestTensor output = member.blank(out, dtype, rows * n, 2);
    member.group().allToAllSingle(output.view(), input.view());
    String what = "allToAllSingle of " + dtype.label() + " with " + rows + " rows";
    output.assertValues(what, expected);
    input.assertValues(what + ", input", sent);
  }

  /** Returns the number of rows that a rank sends to another. */
  private static long rows(int from, int to, int size) {
    return (from + 2L * to) % (size + 1);
  }

  private static double[] sent(int from, int to, int size) {
    double[] values = new double[(int) rows(from, to, size)];
    for (int i = 0; i < values.length; i++) {
      values[i] = 10_000 * from + 100 * to + i;
    }
    return values;
  }

  private static void addRows(List<Double> values, int from, int to, int size, int width) {
    for (double value : sent(from, to, size)) {
      for (int column = 0; column < width; column++) {
        values.add(value + column / 4.0);
      }
    }
  }

  private static double[] toArray(List<Double> values) {
    return values.stream().mapToDouble(Double::doubleValue).toArray();
  }
}
