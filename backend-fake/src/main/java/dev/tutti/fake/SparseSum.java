package dev.tutti.fake;

import dev.tutti.DType;
import dev.tutti.ReduceOp;
import dev.tutti.Tensor;
import dev.tutti.spi.HostReducer;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/** Adds sparse tensors of all ranks in order of rank; the sum is coalesced, its indices ascend. */
final class SparseSum {
  private SparseSum() {}

  /**
   * Adds tensors.
   *
   * @param tensors one of each rank, of one shape and type, coalesced or not
   * @return a new tensor
   * @throws IllegalArgumentException if the numbers of sparse dimensions differ
   */
  static Tensor of(List<Tensor> tensors) {
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
    DType wide = Halves.isHalf(dtype) ? DType.FLOAT32 : dtype;
    Tensor sums = Tensor.allocate(wide, rows.size(), rowLength);
    boolean[] seen = new boolean[rows.size()];
    long rowBytes = rowLength * wide.byteSize();
    for (Tensor tensor : tensors) {
      Tensor values = widened(tensor.values());
      for (long entry = 0; entry < tensor.indices().size(1); entry++) {
        int row = rows.getOrDefault(key(tensor, entry, shape), 0);
        if (seen[row]) {
          HostReducer.reduce(
              ReduceOp.Kind.SUM,
              wide,
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
    return sorted(rows, sums, dtype, sparseDims, shape);
  }

  private static Tensor sorted(
      Map<Long, Integer> rows, Tensor sums, DType dtype, int sparseDims, long[] shape) {
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
    Tensor values = ordered;
    if (sums.dtype() != dtype) {
      values = Tensor.allocate(dtype, valueShape);
      Halves.narrow(dtype, ordered.segment(), values.segment(), 0, ordered.numel());
    }
    return Tensor.sparse(indices, values.view(valueShape), shape);
  }

  private static Tensor widened(Tensor values) {
    if (!Halves.isHalf(values.dtype())) {
      return values;
    }
    Tensor wide = Tensor.allocate(DType.FLOAT32, values.shape());
    Halves.widen(values.dtype(), values.segment(), 0, wide.segment(), values.numel());
    return wide;
  }

  private static long key(Tensor tensor, long entry, long[] shape) {
    Tensor indices = tensor.indices();
    long key = 0;
    for (int d = 0; d < indices.size(0); d++) {
      long index = indices.flatLong(d * indices.size(1) + entry);
      if (index < 0 || index >= shape[d]) {
        throw new IndexOutOfBoundsException(
            "index " + index + " is outside dimension " + d + " of " + tensor);
      }
      key = key * shape[d] + index;
    }
    return key;
  }
}
