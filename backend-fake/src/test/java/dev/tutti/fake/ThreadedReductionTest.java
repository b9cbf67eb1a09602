package dev.tutti.fake;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.DType;
import dev.tutti.OpType;
import dev.tutti.ReduceOp;
import dev.tutti.Tensor;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import java.util.concurrent.ConcurrentHashMap;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class ThreadedReductionTest {
  private static final long COUNT = 13;

  private interface Case {
    void run(RawWorld.Rank rank, DType dtype, ReduceOp op) throws Exception;
  }

  /** Runs a case on all ranks of a group, for each type and each operator the type supports. */
  private static void forAll(int size, Case body) {
    RawWorld.run(
        size,
        rank -> {
          for (DType dtype : DType.values()) {
            for (ReduceOp op : Samples.opsOn(dtype, rank.rank)) {
              body.run(rank, dtype, op);
            }
          }
        });
  }

  private static void check(Tensor actual, ReduceOp op, int size, long start) {
    Tensor expected = Samples.reduced(actual.dtype(), op, size, start, actual.numel());
    assertThat(Samples.sameBits(actual, expected))
        .as(
            "%s of %s: %s, expected %s",
            op,
            actual,
            Arrays.toString(actual.viewAsReal().toDoubleArray()),
            Arrays.toString(expected.viewAsReal().toDoubleArray()))
        .isTrue();
  }

  @ParameterizedTest
  @ValueSource(ints = {1, 2, 3, 4})
  void allReduceReducesEveryTypeByEveryOperator(int size) {
    forAll(
        size,
        (rank, dtype, op) -> {
          Tensor tensor = Samples.fill(Tensor.allocate(dtype, COUNT), rank.rank);
          rank.backend.allReduce(rank.op(OpType.ALL_REDUCE), tensor, op);
          check(tensor, op, size, 0);
        });
  }

  @ParameterizedTest
  @ValueSource(ints = {1, 2, 3, 4})
  void reduceReducesToTheRoot(int size) {
    forAll(
        size,
        (rank, dtype, op) -> {
          for (int root = 0; root < size; root++) {
            Tensor tensor = Samples.fill(Tensor.allocate(dtype, COUNT), rank.rank);
            rank.backend.reduce(rank.op(OpType.REDUCE), tensor, op, root);
            if (rank.rank == root) {
              check(tensor, op, size, 0);
            }
          }
        });
  }

  @ParameterizedTest
  @ValueSource(ints = {1, 2, 3, 4})
  void allReduceCoalescedReducesEachTensor(int size) {
    forAll(
        size,
        (rank, dtype, op) -> {
          List<Tensor> tensors = new ArrayList<>();
          for (long count : new long[] {1, 0, 5}) {
            tensors.add(Samples.fill(Tensor.allocate(dtype, count), rank.rank));
          }
          rank.backend.allReduceCoalesced(rank.op(OpType.ALL_REDUCE_COALESCED), tensors, op);
          for (Tensor tensor : tensors) {
            check(tensor, op, size, 0);
          }
        });
  }

  @ParameterizedTest
  @ValueSource(ints = {1, 2, 3, 4})
  void reduceScatterIntoHandsOutEqualParts(int size) {
    forAll(
        size,
        (rank, dtype, op) -> {
          Tensor input = Samples.fill(Tensor.allocate(dtype, COUNT * size), rank.rank);
          Tensor before = input.copy();
          Tensor output = Tensor.allocate(dtype, COUNT);
          rank.backend.reduceScatterInto(rank.op(OpType.REDUCE_SCATTER_INTO), output, input, op);
          check(output, op, size, rank.rank * COUNT);
          assertThat(Samples.sameBits(input, before)).isTrue();

          Tensor second = Tensor.allocate(dtype, COUNT);
          rank.backend.reduceScatterIntoCoalesced(
              rank.op(OpType.REDUCE_SCATTER_INTO_COALESCED),
              List.of(output, second),
              List.of(input, before),
              op);
          check(output, op, size, rank.rank * COUNT);
          check(second, op, size, rank.rank * COUNT);
        });
  }

  @ParameterizedTest
  @ValueSource(ints = {1, 2, 3, 4})
  void reduceScatterHandsOutUnequalParts(int size) {
    forAll(
        size,
        (rank, dtype, op) -> {
          List<Tensor> inputs = new ArrayList<>();
          for (int peer = 0; peer < size; peer++) {
            inputs.add(Samples.fill(Tensor.allocate(dtype, peer * 3L), rank.rank));
          }
          Tensor output = Tensor.allocate(dtype, rank.rank * 3L);
          rank.backend.reduceScatter(rank.op(OpType.REDUCE_SCATTER), output, inputs, op);
          check(output, op, size, 0);
        });
  }

  @Test
  void reduceScatterMayWriteIntoItsInput() {
    RawWorld.run(
        3,
        rank -> {
          Tensor input = Samples.fill(Tensor.allocate(DType.INT32, 12), rank.rank);
          Tensor output = input.narrow(0, 4L * ((rank.rank + 1) % 3), 4);
          rank.backend.reduceScatterInto(
              rank.op(OpType.REDUCE_SCATTER_INTO), output, input, ReduceOp.SUM);
          check(output, ReduceOp.SUM, 3, rank.rank * 4L);
        });
  }

  /** Sums that depend on the order of the ranks must be computed in rank order, on all ranks. */
  @ParameterizedTest
  @ValueSource(ints = {1000, 400_001})
  void floatsAreAddedInOrderOfRank(int count) {
    int size = 4;
    float[] expected = new float[count];
    for (int rank = 0; rank < size; rank++) {
      Random random = new Random(rank);
      for (int i = 0; i < count; i++) {
        float value = (random.nextFloat() - 0.5f) * 1e6f;
        expected[i] = rank == 0 ? value : expected[i] + value;
      }
    }
    RawWorld.run(
        size,
        rank -> {
          Random random = new Random(rank.rank);
          Tensor tensor = Tensor.allocate(DType.FLOAT32, count);
          for (int i = 0; i < count; i++) {
            tensor.setDouble(i, (random.nextFloat() - 0.5f) * 1e6f);
          }
          rank.backend.allReduce(rank.op(OpType.ALL_REDUCE), tensor, ReduceOp.SUM);
          assertThat(Arrays.mismatch(tensor.toFloatArray(), expected)).isEqualTo(-1);
        });
  }

  @Test
  void halvesAreRoundedOnce() {
    // In bfloat16 each single 1 would be lost next to 256, but their sum is not.
    RawWorld.run(
        4,
        rank -> {
          Tensor tensor = Tensor.allocate(DType.BFLOAT16, 5000);
          tensor.fill(rank.rank == 0 ? 256 : 1);
          rank.backend.allReduce(rank.op(OpType.ALL_REDUCE), tensor, ReduceOp.SUM);
          assertThat(tensor.toDoubleArray()).containsOnly(260);
        });
  }

  @Test
  void sparseSumsAreCoalescedAndEqual() {
    ConcurrentHashMap<DType, String> seen = new ConcurrentHashMap<>();
    for (DType dtype : List.of(DType.FLOAT32, DType.BFLOAT16, DType.INT64, DType.COMPLEX64)) {
      RawWorld.run(
          3,
          rank -> {
            // Shape [4, 3, 2] with two sparse dimensions; rank 2 contributes nothing, rank 0
            // repeats an index.
            long[][] places =
                switch (rank.rank) {
                  case 0 -> new long[][] {{3, 0, 3}, {1, 2, 1}};
                  case 1 -> new long[][] {{0, 2}, {2, 0}};
                  default -> new long[][] {{}, {}};
                };
            int nnz = places[0].length;
            Tensor indices = Tensor.allocate(DType.INT64, 2, nnz);
            Tensor values = Tensor.allocate(dtype, nnz, 2);
            Tensor real = values.viewAsReal();
            long perRow = nnz == 0 ? 0 : real.numel() / nnz;
            for (int entry = 0; entry < nnz; entry++) {
              indices.setLong(entry, places[0][entry]);
              indices.setLong(nnz + entry, places[1][entry]);
              for (int i = 0; i < perRow; i++) {
                real.setDouble(entry * perRow + i, 10.0 * rank.rank + entry + 1 + i);
              }
            }
            TestOperation op = rank.op(OpType.ALL_REDUCE_SPARSE);
            rank.backend.allReduceSparse(op, Tensor.sparse(indices, values, 4, 3, 2), ReduceOp.SUM);
            Tensor sum = op.result().get(0);
            assertThat(sum.indices().toLongArray()).containsExactly(0, 2, 3, 2, 0, 1);
            double[] first = sum.values().viewAsReal().toDoubleArray();
            assertThat(first).hasSize(dtype.isComplex() ? 12 : 6);
            if (!dtype.isComplex()) {
              // (0,2): rank 0's second plus rank 1's first; (2,0): rank 1; (3,1): rank 0 twice.
              assertThat(first).containsExactly(2 + 11, 3 + 12, 12, 13, 1 + 3, 2 + 4);
            }
            seen.putIfAbsent(dtype, Arrays.toString(first));
            assertThat(Arrays.toString(first)).isEqualTo(seen.get(dtype));
          });
    }
  }
}
