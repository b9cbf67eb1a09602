package dev.tutti.cpu;

import dev.tutti.DType;
import dev.tutti.Tensor;
import dev.tutti.cpu.sparse.PlaceOrder;
import dev.tutti.cpu.sparse.SparseKeys;
import dev.tutti.cpu.sparse.SparsePlaces;
import dev.tutti.cpu.sparse.SparseRows;
import java.lang.foreign.MemorySegment;
import java.util.Arrays;
import java.util.List;

/**
 * Adds sparse tensors in host memory, in their given order; the sum is coalesced and its indices
 * ascend. Half-precision types are rounded once, after the last tensor. It serves the sparse
 * all-reduce of backends in which every rank gets the tensors of all ranks.
 */
public final class SparseSum {
  private SparseSum() {}

  /**
   * Adds tensors.
   *
   * @param tensors one tensor of each rank, all of the same shape and type, coalesced or not
   * @return a new tensor
   * @throws IllegalArgumentException if shapes, types or the numbers of sparse dimensions differ,
   *     or there are too many entries or places: at most 2<sup>31</sup> &minus; 9 entries in all,
   *     and 2<sup>63</sup> &minus; 1 places, are allowed
   * @throws IndexOutOfBoundsException if an index is outside the shape
   */
  public static Tensor of(List<Tensor> tensors) {
    return sum(tensors, SparseKeys.of(tensors));
  }

  /**
   * Coalesces a tensor.
   *
   * @param tensor the tensor of one rank
   * @return the tensor itself if it is coalesced, or else a new one
   * @throws IllegalArgumentException if there are too many entries or places, as in {@link #of}
   * @throws IndexOutOfBoundsException if an index is outside the shape
   */
  public static Tensor coalesce(Tensor tensor) {
    List<Tensor> alone = List.of(tensor);
    SparseKeys keys = SparseKeys.of(alone);
    return keys.isAscending() ? tensor : sum(alone, keys);
  }

  private static Tensor sum(List<Tensor> tensors, SparseKeys keys) {
    Tensor model = tensors.get(0);
    long[] shape = model.shape();
    int sparseDims = (int) model.indices().size(0);
    SparsePlaces places = keys.isAscending() ? null : PlaceOrder.of(keys);
    int count = places == null ? keys.count() : places.count();
    Tensor indices = Tensor.allocate(DType.INT64, sparseDims, count);
    long[] valueShape = model.values().shape();
    valueShape[0] = count;
    Tensor sums = Tensor.allocate(model.dtype(), valueShape);
    if (places == null) {
      join(tensors, keys, indices, sums);
    } else {
      places.writeIndices(indices.segment(), Arrays.copyOf(shape, sparseDims));
      SparseRows.sum(tensors, keys, places, sums.segment());
    }
    return Tensor.sparse(indices, sums, shape);
  }

  /**
   * Copies tensors whose entries ascend from the first entry of the first tensor to the last entry
   * of the last tensor.
   */
  private static void join(List<Tensor> tensors, SparseKeys keys, Tensor indices, Tensor sums) {
    long bytes = 0;
    for (int t = 0; t < tensors.size(); t++) {
      Tensor tensor = tensors.get(t);
      MemorySegment places = tensor.indices().segment();
      long row = 8L * (keys.start(t + 1) - keys.start(t));
      for (int d = 0; d < indices.size(0); d++) {
        long at = 8L * (d * (long) keys.count() + keys.start(t));
        MemorySegment.copy(places, d * row, indices.segment(), at, row);
      }
      Tensor values = tensor.values();
      MemorySegment.copy(values.segment(), 0, sums.segment(), bytes, values.byteSize());
      bytes += values.byteSize();
    }
  }
}
