package dev.tutti.gloo.algorithm;

import dev.tutti.DType;
import dev.tutti.Tensor;
import dev.tutti.cpu.SparseSum;
import dev.tutti.spi.Operation;
import dev.tutti.spi.PeerLostException;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/**
 * Sums sparse tensors: all ranks gather everyone's shapes, then the indices, then the values. Each
 * rank adds them up by itself, in rank order (c10d: {@code AsyncSparseAllreduceWork}).
 * Half-precision types are rounded once on each rank and once at the end; with PyTorch ranks, which
 * must get the same bits, they are rounded after each rank.
 *
 * <table>
 * <caption>Cost for N ranks</caption>
 * <tr><th>steps</th><th>bytes received by each rank</th></tr>
 * <tr><td>three gathers</td><td>indices and values of all other ranks</td></tr>
 * </table>
 */
public final class SparseAllReduce {
  /** Carries out the communication of the three rounds of one operation. */
  public interface Exchange {
    /** Gathers equal parts; this rank's own part is already in place. */
    void gather(MemorySegment memory, long bytes) throws Exception;

    /** Gathers unequal parts; this rank's own part is already in place. */
    void gatherUneven(MemorySegment memory, long[] bytes) throws Exception;
  }

  /*
   * What a rank reports about its tensor: up to four sparse sizes, up to four dense ones, and the
   * count.
   */
  private static final int MAX_DIMS = 4;
  private static final int WORDS = 2 * MAX_DIMS + 1;

  /**
   * How much memory is kept for the next operation: touching fresh memory takes longer than a sum.
   */
  private static final long MOST_KEPT = 64 << 20;

  private final int rank;
  private final int size;
  private final Scratch places = new Scratch();
  private final Scratch rows = new Scratch();

  /** Creates an instance for any number of operations, one at a time. */
  public SparseAllReduce(int rank, int size) {
    this.rank = rank;
    this.size = size;
  }

  /**
   * Checks that the shape of a tensor can be reported.
   *
   * @param tensor a sparse tensor
   * @throws UnsupportedOperationException if it has too many dimensions
   */
  public static void check(Tensor tensor) {
    long sparse = tensor.indices().size(0);
    long dense = tensor.dim() - sparse;
    if (sparse > MAX_DIMS || dense > MAX_DIMS) {
      throw new UnsupportedOperationException(
          "sparse tensors may have up to "
              + MAX_DIMS
              + " sparse and "
              + MAX_DIMS
              + " dense dimensions, not "
              + sparse
              + " and "
              + dense);
    }
  }

  /**
   * Sums the tensors of all ranks.
   *
   * @param tensor this rank's tensor, already checked
   * @param asPytorch whether to round after each rank
   * @param exchange carries out the communication
   * @return the sum, coalesced
   * @throws Exception if a wait fails, or shapes differ
   */
  public Tensor run(Operation op, Tensor tensor, boolean asPytorch, Exchange exchange)
      throws Exception {
    Tensor own = SparseSum.coalesce(tensor);
    int sparseDims = (int) own.indices().size(0);
    long[] shape = own.shape();
    long rowBytes = own.dtype().byteSize();
    for (int d = sparseDims; d < shape.length; d++) {
      rowBytes *= shape[d];
    }
    long[] counts = gatherCounts(op, own, sparseDims, exchange);
    MemorySegment indices = gatherRows(own.indices(), counts, 8L * sparseDims, places, exchange);
    MemorySegment values = gatherRows(own.values(), counts, rowBytes, rows, exchange);
    List<Tensor> all = new ArrayList<>();
    long start = 0;
    for (int r = 0; r < size; r++) {
      long[] valueShape = own.values().shape();
      valueShape[0] = counts[r];
      MemorySegment coordinates = indices.asSlice(start * 8 * sparseDims);
      MemorySegment numbers = values.asSlice(start * rowBytes);
      all.add(
          Tensor.sparse(
              Tensor.wrap(coordinates, DType.INT64, sparseDims, counts[r]),
              Tensor.wrap(numbers, own.dtype(), valueShape),
              shape));
      start += counts[r];
    }
    try {
      return asPytorch && isHalf(own.dtype()) ? sumByRank(all) : SparseSum.of(all);
    } catch (IndexOutOfBoundsException e) {
      throw badIndex(all, e);
    }
  }

  private static boolean isHalf(DType dtype) {
    return dtype == DType.FLOAT16 || dtype == DType.BFLOAT16;
  }

  /** Adds tensors, rounding after each one. */
  static Tensor sumByRank(List<Tensor> tensors) {
    Tensor sum = SparseSum.of(tensors.subList(0, 1));
    for (Tensor next : tensors.subList(1, tensors.size())) {
      sum = SparseSum.of(List.of(sum, next));
    }
    return sum;
  }

  private long[] gatherCounts(Operation op, Tensor own, int sparseDims, Exchange exchange)
      throws Exception {
    Tensor metadata = Tensor.allocate(DType.INT64, (long) size * WORDS);
    MemorySegment memory = metadata.segment();
    long[] shape = own.shape();
    for (int d = 0; d < shape.length; d++) {
      int word = d < sparseDims ? d : MAX_DIMS + d - sparseDims;
      memory.setAtIndex(ValueLayout.JAVA_LONG, (long) rank * WORDS + word, shape[d]);
    }
    memory.setAtIndex(
        ValueLayout.JAVA_LONG, (long) rank * WORDS + WORDS - 1, own.indices().size(1));
    exchange.gather(memory, WORDS * 8L);
    long[] words = metadata.toLongArray();
    long[] counts = new long[size];
    for (int r = 0; r < size; r++) {
      if (!Arrays.equals(
          words, r * WORDS, (r + 1) * WORDS - 1, words, rank * WORDS, (rank + 1) * WORDS - 1)) {
        throw new PeerLostException(
            r,
            "sparse dimensions do not match: rank "
                + rank
                + " called "
                + op.type().label()
                + " with "
                + own
                + ", rank "
                + r
                + " with another shape",
            null);
      }
      counts[r] = checked(r, words[(r + 1) * WORDS - 1], shape, sparseDims);
    }
    return counts;
  }

  private static long checked(int rank, long count, long[] shape, int sparseDims)
      throws PeerLostException {
    long rest = count;
    for (int d = 0; d < sparseDims; d++) {
      rest = Math.ceilDiv(rest, Math.max(1, shape[d]));
    }
    // Entries have distinct places, and the product of the sparse sizes is the number of places.
    if (count < 0 || rest > 1) {
      throw new PeerLostException(
          rank,
          "rank "
              + rank
              + " announced "
              + count
              + " entries of a sparse tensor of shape "
              + Arrays.toString(shape),
          null);
    }
    return count;
  }

  /** Finds the rank that sent an index outside the shape, which the sum does not report. */
  private static PeerLostException badIndex(List<Tensor> all, IndexOutOfBoundsException cause) {
    for (int r = 0; r < all.size(); r++) {
      Tensor indices = all.get(r).indices();
      for (int d = 0; d < indices.size(0); d++) {
        long size = all.get(r).size(d);
        for (long i = 0; i < indices.size(1); i++) {
          long index = indices.getLong(d * indices.size(1) + i);
          if (index < 0 || index >= size) {
            return new PeerLostException(
                r, "rank " + r + " sent index " + index + " in a dimension of size " + size, null);
          }
        }
      }
    }
    throw cause;
  }

  private MemorySegment gatherRows(
      Tensor own, long[] counts, long rowBytes, Scratch scratch, Exchange exchange)
      throws Exception {
    long[] bytes = new long[size];
    long total = 0;
    long before = 0;
    for (int r = 0; r < size; r++) {
      bytes[r] = Math.multiplyExact(counts[r], rowBytes);
      total = Math.addExact(total, bytes[r]);
      before += r < rank ? bytes[r] : 0;
    }
    MemorySegment all =
        total > MOST_KEPT
            ? Tensor.allocate(DType.UINT8, total).segment()
            : scratch.atLeast(roundUp(total)).asSlice(0, total);
    MemorySegment.copy(own.segment(), 0, all, before, bytes[rank]);
    exchange.gatherUneven(all, bytes);
    return all;
  }

  /** Rounds up to a power of two, so that memory need not grow often. */
  private static long roundUp(long bytes) {
    return bytes < 2 ? bytes : Long.highestOneBit(bytes - 1) << 1;
  }
}
