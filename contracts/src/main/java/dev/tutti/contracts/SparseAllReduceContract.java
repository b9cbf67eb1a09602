package dev.tutti.contracts;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.CallOptions;
import dev.tutti.DType;
import dev.tutti.OpType;
import dev.tutti.ReduceOp;
import dev.tutti.Tensor;
import dev.tutti.Work;

/**
 * Tests of the all-reduce of sparse tensors: the sum is returned coalesced, and the input stays
 * unchanged.
 */
public interface SparseAllReduceContract extends GroupContract {
  /**
   * Sums tensors with a different number of values on each rank, some of them at the same place.
   */
  @ContractTest(needs = OpType.ALL_REDUCE_SPARSE, movesData = true)
  default void sparseAllReduceSumsDuplicatesAndUnequalCounts(ContractWorld world) throws Exception {
    world.run(
        member -> {
          for (DType dtype : DType.values()) {
            if (member.capabilities().canReduce(dtype, ReduceOp.SUM)
                && dtype != DType.BOOL
                && !dtype.isComplex()) {
              int[] nnz = new int[member.size()];
              for (int rank = 0; rank < nnz.length; rank++) {
                nnz[rank] = (2 * rank + 1) % 9;
              }
              checkSum(member, dtype, nnz);
            }
          }
        });
  }

  /** Sums tensors, some or all of which hold no values. */
  @ContractTest(needs = OpType.ALL_REDUCE_SPARSE, movesData = true)
  default void sparseAllReduceTakesEmptyTensors(ContractWorld world) throws Exception {
    world.run(
        member -> {
          int[] none = new int[member.size()];
          checkSum(member, DType.FLOAT32, none);
          int[] onlyLast = none.clone();
          onlyLast[none.length - 1] = 3;
          checkSum(member, DType.FLOAT32, onlyLast);
        });
  }

  /** Sums twice, and checks that the first sum is unchanged. */
  @ContractTest(needs = OpType.ALL_REDUCE_SPARSE, movesData = true)
  default void sparseSumsStayWhenOthersFollow(ContractWorld world) throws Exception {
    world.run(
        member -> {
          Tensor first = sum(member, sparse(member, DType.FLOAT32, 7));
          long[] places = host(member, first.indices()).toLongArray();
          double[] values = host(member, first.values()).toDoubleArray();
          for (int nnz : new int[] {7, 3, 9}) {
            Tensor _ = sum(member, sparse(member, DType.FLOAT32, nnz));
          }
          assertThat(host(member, first.indices()).toLongArray()).isEqualTo(places);
          assertThat(host(member, first.values()).toDoubleArray()).isEqualTo(values);
        });
  }

  private static Tensor sum(Member member, Tensor sparse) {
    Work work = member.group().allReduce(sparse, ReduceOp.SUM, CallOptions.DEFAULT);
    work.await();
    return work.result().get(0);
  }

  /** Adds many ones at one place, more than a half-precision type can count in steps of one. */
  @ContractTest(needs = OpType.ALL_REDUCE_SPARSE, movesData = true)
  default void sparseAllReduceOfHalfTypesRoundsLate(ContractWorld world) throws Exception {
    world.run(
        member -> {
          checkOnes(member, DType.FLOAT16, 4096);
          checkOnes(member, DType.BFLOAT16, 512);
        });
  }

  /** Refuses operators other than SUM, and leaves the group usable. */
  @ContractTest(needs = OpType.ALL_REDUCE_SPARSE)
  default void sparseAllReduceRefusesOtherOperators(ContractWorld world) throws Exception {
    Refusals.check(
        world,
        (member, group, refused) -> {
          Tensor sparse = sparse(member, DType.FLOAT32, 2);
          refused.badArgument(
              "MAX", () -> group.allReduce(sparse, ReduceOp.MAX, CallOptions.DEFAULT));
        });
  }

  /** Refuses indices outside the tensor, and leaves the group usable. */
  @ContractTest(needs = OpType.ALL_REDUCE_SPARSE)
  default void sparseAllReduceRefusesIndicesOutside(ContractWorld world) throws Exception {
    Refusals.check(
        world,
        (member, group, refused) -> {
          for (int bad : new int[] {-1, 4}) {
            Tensor indices = member.tensor(DType.INT64, new double[] {0, 2, 3, bad}, 2, 2).view();
            if (indices.device().isCpu()) {
              Tensor sparse = Tensor.sparse(indices, member.floats(1, 2).view(), 3, 4);
              refused.badArgument(
                  "indices[1, 1] is " + bad,
                  () -> group.allReduce(sparse, ReduceOp.SUM, CallOptions.DEFAULT));
            }
          }
        });
  }

  private static void checkSum(Member member, DType dtype, int[] nnz) {
    Tensor input = sparse(member, dtype, nnz[member.rank()]);
    long[] indicesBefore = host(member, input.indices()).toLongArray();
    double[] valuesBefore = host(member, input.values()).toDoubleArray();
    Tensor result = sum(member, input);
    double[] expected = new double[12 * 2];
    for (int rank = 0; rank < nnz.length; rank++) {
      addDense(expected, indices(nnz[rank], rank), values(nnz[rank], rank));
    }
    long[] coordinates = host(member, result.indices()).toLongArray();
    double[] sum = new double[12 * 2];
    addDense(sum, coordinates, host(member, result.values()).toDoubleArray());
    String what = "sparse sum of " + dtype.label();
    assertThat(result.isSparse()).as(what).isTrue();
    assertThat(result.shape()).as(what).containsExactly(3, 4, 2);
    assertThat(sum).as(what).isEqualTo(expected);
    assertThat(isCoalesced(coordinates)).as(what + " has each place once, in order").isTrue();
    assertThat(host(member, input.indices()).toLongArray())
        .as("indices of the input")
        .isEqualTo(indicesBefore);
    assertThat(host(member, input.values()).toDoubleArray())
        .as("values of the input")
        .isEqualTo(valuesBefore);
  }

  /** Sums the given number of ones at one place, shared among the ranks. */
  private static void checkOnes(Member member, DType dtype, int total) {
    if (!member.capabilities().canReduce(dtype, ReduceOp.SUM)) {
      return;
    }
    int own = total / member.size() + (member.rank() < total % member.size() ? 1 : 0);
    Tensor indices = member.tensor(DType.INT64, new double[own], 1, own).view();
    Tensor values = member.tensor(dtype, TestData.constant(dtype, 1, own), own).view();
    Tensor result = sum(member, Tensor.sparse(indices, values, 3));
    assertThat(host(member, result.indices()).toLongArray()).containsExactly(0);
    assertThat(host(member, result.values()).toDoubleArray())
        .as("sparse sum of %s ones of %s", total, dtype.label())
        .containsExactly(total);
  }

  private static Tensor sparse(Member member, DType dtype, int nnz) {
    long[] coordinates = indices(nnz, member.rank());
    double[] reals = new double[coordinates.length];
    for (int i = 0; i < reals.length; i++) {
      reals[i] = coordinates[i];
    }
    Tensor indices = member.tensor(DType.INT64, reals, 2, nnz).view();
    Tensor values = member.tensor(dtype, values(nnz, member.rank()), nnz, 2).view();
    return Tensor.sparse(indices, values, 3, 4, 2);
  }

  /**
   * Returns the rows, then the columns, of places in a 3 x 4 tensor; the first place appears twice.
   */
  private static long[] indices(int nnz, int rank) {
    long[] places = new long[2 * nnz];
    for (int i = 0; i < nnz; i++) {
      int place = (rank + 5 * Math.max(0, i - 1)) % 12;
      places[i] = place / 4;
      places[nnz + i] = place % 4;
    }
    return places;
  }

  private static double[] values(int nnz, int rank) {
    double[] values = new double[2 * nnz];
    for (int i = 0; i < values.length; i++) {
      values[i] = rank < 8 ? (rank + i) % 3 : (rank + i) % 16 == 0 ? 1 : 0;
    }
    return values;
  }

  private static void addDense(double[] dense, long[] coordinates, double[] values) {
    int nnz = coordinates.length / 2;
    for (int i = 0; i < nnz; i++) {
      int place = (int) (coordinates[i] * 4 + coordinates[nnz + i]);
      dense[2 * place] += values[2 * i];
      dense[2 * place + 1] += values[2 * i + 1];
    }
  }

  private static boolean isCoalesced(long[] coordinates) {
    int nnz = coordinates.length / 2;
    long last = -1;
    for (int i = 0; i < nnz; i++) {
      long place = coordinates[i] * 4 + coordinates[nnz + i];
      if (place <= last) {
        return false;
      }
      last = place;
    }
    return true;
  }

  private static Tensor host(Member member, Tensor tensor) {
    return member.world().subject().copyOut(tensor);
  }
}
