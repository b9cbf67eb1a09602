package dev.tutti.cuda;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.CallOptions;
import dev.tutti.DType;
import dev.tutti.ProcessGroup;
import dev.tutti.ReduceOp;
import dev.tutti.Tensor;
import dev.tutti.Work;
import dev.tutti.cpu.SparseSum;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.SplittableRandom;

/**
 * Sums sparse tensors of all shapes in a group, and compares the results bit by bit with those of
 * the host.
 */
public final class SparseCases {
  private final ProcessGroup group;
  private final CudaDevice device;
  private final Map<String, Sum> sums;

  /** The tensors of all ranks, and their sum. */
  public record Sum(List<Tensor> own, Tensor expected) {}

  /**
   * A kind of tensor.
   *
   * @param sparseDims the number of sparse dimensions of the shape
   * @param distinct the maximum number of distinct indices; all if there are fewer
   * @param hot the share of the entries at one index, in percent
   */
  @SuppressWarnings("ArrayRecordComponent") // never compared
  public record Kind(DType dtype, int sparseDims, long[] shape, long distinct, int hot) {
    static Kind of(DType dtype, int sparseDims, long... shape) {
      return new Kind(dtype, sparseDims, shape, Long.MAX_VALUE, 0);
    }

    Kind distinct(long most) {
      return new Kind(dtype, sparseDims, shape, most, hot);
    }

    Kind hot(int percent) {
      return new Kind(dtype, sparseDims, shape, distinct, percent);
    }

    private long places() {
      long places = 1;
      for (int d = 0; d < sparseDims; d++) {
        places *= shape[d];
      }
      return places;
    }

    @Override
    public String toString() {
      return "%s%s, %d sparse, at most %d distinct, %d%% hot"
          .formatted(dtype.label(), Arrays.toString(shape), sparseDims, distinct, hot);
    }
  }

  /**
   * Prepares the sums of a rank.
   *
   * @param sums what the host has summed already, which ranks and tests of a process share
   */
  public SparseCases(ProcessGroup group, CudaDevice device, Map<String, Sum> sums) {
    this.group = group;
    this.device = device;
    this.sums = sums;
  }

  /** Sums tensors of all kinds, with at most about a given number of entries. */
  public void all(int most) {
    for (DType dtype : DType.values()) {
      if (group.capabilities(device.device()).canReduce(dtype, ReduceOp.SUM)) {
        sum(Kind.of(dtype, 1, 50_000, 3), Math.min(most, 700));
        sum(Kind.of(dtype, 2, 11, 13).hot(20), Math.min(most, 3000));
      }
    }
    for (int entries : new int[] {0, 1, 31, 4095, 4096, 4097, 70_001, most}) {
      if (entries <= most) {
        sum(Kind.of(DType.FLOAT32, 1, 1_000_003), entries);
        sum(Kind.of(DType.FLOAT32, 1, 1_000_003).distinct(1 + entries / 3), entries);
        sum(Kind.of(DType.INT64, 3, 1 << 20, 1 << 20, 1 << 20), entries);
        sum(Kind.of(DType.FLOAT64, 1, 257, 2).hot(60), entries);
        sum(Kind.of(DType.BFLOAT16, 2, 300, 17, 5, 7), entries);
      }
    }
    sum(Kind.of(DType.FLOAT32, 1, 1, 33), Math.min(most, 5000));
    sum(Kind.of(DType.FLOAT32, 0, 4), Math.min(most, 100));
    sum(Kind.of(DType.FLOAT32, 2, 9, 1, 0), Math.min(most, 100));
    sum(Kind.of(DType.INT16, 4, 3, 2, 5, 7, 2, 2, 3), Math.min(most, 2000));
    sum(Kind.of(DType.INT32, 1, 40, 300).hot(90), Math.min(most, 4000));
  }

  /** Sums tensors of one kind. */
  private void sum(Kind kind, int entries) {
    if (!group.capabilities(device.device()).canReduce(kind.dtype, ReduceOp.SUM)) {
      return;
    }
    String what = "%s, %d entries on %d ranks".formatted(kind, entries, group.size());
    Sum known = sums.computeIfAbsent(what, _ -> onHost(kind, entries, group.size()));
    Tensor own = known.own.get(group.rank());
    Tensor expected = known.expected;
    Tensor indices = device.tensors().copyOf(own.indices());
    Tensor values = device.tensors().copyOf(own.values());
    Work work =
        group.allReduce(
            Tensor.sparse(indices, values, kind.shape), ReduceOp.SUM, CallOptions.DEFAULT);
    work.await();
    Tensor sum = work.result().getFirst();
    assertThat(sum.shape()).as(what).isEqualTo(kind.shape);
    assertThat(device.tensors().toHost(sum.indices()).toLongArray())
        .as(what)
        .isEqualTo(expected.indices().toLongArray());
    assertThat(bytes(device.tensors().toHost(sum.values())))
        .as(what)
        .isEqualTo(bytes(expected.values()));
    assertThat(bytes(device.tensors().toHost(values))).as(what).isEqualTo(bytes(own.values()));
  }

  /** Makes the tensors of all ranks, which have different numbers of entries, and sums them. */
  private static Sum onHost(Kind kind, int entries, int ranks) {
    List<Tensor> own = new ArrayList<>();
    List<Tensor> coalesced = new ArrayList<>();
    for (int rank = 0; rank < ranks; rank++) {
      int count = rank == 1 ? entries / 2 : entries;
      own.add(tensor(kind, count, 31L * entries + rank));
      coalesced.add(SparseSum.of(List.of(own.getLast())));
    }
    return new Sum(own, SparseSum.of(coalesced));
  }

  private static byte[] bytes(Tensor tensor) {
    return tensor.segment().toArray(ValueLayout.JAVA_BYTE);
  }

  /**
   * Creates a tensor of small whole numbers, whose sums are exact in any order, or of arbitrary
   * numbers if few rows share an index.
   */
  private static Tensor tensor(Kind kind, int entries, long seed) {
    SplittableRandom random = new SplittableRandom(seed);
    long[] coordinates = new long[kind.sparseDims * entries];
    long places = Math.min(kind.places(), kind.distinct);
    long stride = kind.places() / places;
    for (int i = 0; i < entries; i++) {
      boolean isHot = random.nextInt(100) < kind.hot;
      long place = isHot ? 0 : random.nextLong(places) * stride;
      for (int d = kind.sparseDims - 1; d >= 0; d--) {
        coordinates[d * entries + i] = place % kind.shape[d];
        place /= kind.shape[d];
      }
    }
    long[] valueShape = new long[kind.shape.length - kind.sparseDims + 1];
    valueShape[0] = entries;
    System.arraycopy(kind.shape, kind.sparseDims, valueShape, 1, valueShape.length - 1);
    Tensor values = Tensor.allocate(kind.dtype, valueShape);
    boolean isSpread = kind.hot == 0 && places > 20L * entries && !kind.dtype.isInteger();
    Tensor parts = kind.dtype.isComplex() ? parts(values) : values;
    for (long i = 0; i < parts.numel(); i++) {
      if (kind.dtype == DType.BOOL) {
        parts.setDouble(i, (double) random.nextInt(2));
      } else if (isSpread) {
        parts.setDouble(i, random.nextDouble(-3, 3));
      } else {
        // Even in half precision, sums of several thousand are exact.
        parts.setDouble(i, random.nextInt(64) == 0 ? 1.0 : 0.0);
      }
    }
    Tensor indices = Tensor.allocate(DType.INT64, kind.sparseDims, entries);
    for (int i = 0; i < coordinates.length; i++) {
      indices.setLong(i, coordinates[i]);
    }
    return Tensor.sparse(indices, values, kind.shape);
  }

  /** Returns a view of complex numbers as twice as many real ones. */
  private static Tensor parts(Tensor complex) {
    DType part = complex.dtype() == DType.COMPLEX64 ? DType.FLOAT32 : DType.FLOAT64;
    return Tensor.wrap(complex.segment(), part, 2 * complex.numel());
  }
}
