package dev.tutti.spi;

import dev.tutti.DType;
import dev.tutti.ReduceOp;
import dev.tutti.Tensor;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/**
 * Adds sparse tensors in host memory, in their order; the sum is coalesced, its indices ascend. For
 * the sparse all-reduce of backends whose ranks get the tensors of all.
 */
public final class SparseSum {
  private SparseSum() {}

  /**
   * Adds tensors.
   *
   * @param tensors one of each rank, of one shape and type, coalesced or not
   * @return a new tensor
   * @throws IllegalArgumentException if the numbers of sparse dimensions differ
   * @throws IndexOutOfBoundsException if an index is outside the shape
   */
  public static Tensor of(List<Tensor> tensors) {
    Tensor model = tensors.get(0);
    int sparseDims = (int) model.indices().size(0);
    long[] shape = model.shape();
    long rowLength = 1;
    for (int d = sparseDims; d < shape.length; d++) {
      rowLength *= shape[d];
    }
    Map<Long, Integer> rows = new TreeMap<>();
    for (Tensor tensor : tensors) {
      if (tensor.indices().size(0) != sparseDims) {
        throw new IllegalArgumentException(
            "sparse dimensions do not match: " + sparseDims + " and " + tensor.indices().size(0));
      }
      for (long entry = 0; entry < tensor.indices().size(1); entry++) {
        rows.putIfAbsent(key(tensor, entry, shape), rows.size());
      }
    }
    DType dtype = model.dtype();
    Tensor sums = Tensor.allocate(dtype, rows.size(), rowLength);
    boolean[] seen = new boolean[rows.size()];
    long rowBytes = rowLength * dtype.byteSize();
    for (Tensor tensor : tensors) {
      Tensor values = tensor.values();
      for (long entry = 0; entry < tensor.indices().size(1); entry++) {
        int row = rows.getOrDefault(key(tensor, entry, shape), 0);
        if (seen[row]) {
          HostReducer.reduce(
              ReduceOp.Kind.SUM,
              dtype,
              sums.segment(),
              row * rowBytes,
              values.segment(),
              entry * rowBytes,
              rowLength);
        } else {
          seen[row] = true;
          sums.select(0, row).copyFrom(values.view(values.size(0), rowLength).select(0, entry));
        }
      }
    }
    return sorted(rows, sums, sparseDims, shape);
  }

  private static Tensor sorted(Map<Long, Integer> rows, Tensor sums, int sparseDims, long[] shape) {
    Tensor indices = Tensor.allocate(DType.INT64, sparseDims, rows.size());
    Tensor ordered = Tensor.allocate(sums.dtype(), rows.size(), sums.size(1));
    long entry = 0;
    for (Map.Entry<Long, Integer> row : rows.entrySet()) {
      long rest = row.getKey();
      for (int d = sparseDims - 1; d >= 0; d--) {
        indices.setFlat(d * (long) rows.size() + entry, rest % shape[d]);
        rest /= shape[d];
      }
      ordered.select(0, entry).copyFrom(sums.select(0, row.getValue()));
      entry++;
    }
    long[] valueShape = new long[shape.length - sparseDims + 1];
    valueShape[0] = rows.size();
    System.arraycopy(shape, sparseDims, valueShape, 1, valueShape.length - 1);
    return Tensor.sparse(indices, ordered.view(valueShape), shape);
  }

  private static long key(Tensor tensor, long entry, long[] shape) {
    Tensor indices = tensor.indices();
    long key = 0;
    for (int d = 0; d < indices.size(0); d++) {
      long index = indices.flatLong(d * indices.size(1) + entry);
      if (index < 0 || index >= shape[d]) {
        throw new IndexOutOfBoundsException(
            "index " + index + " is outside dimension " + d + " of " + tensor.describe());
      }
      key = key * shape[d] + index;
    }
    return key;
  }
}
