package dev.tutti.spi;

import dev.tutti.DType;
import dev.tutti.ReduceOp;
import dev.tutti.Tensor;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/**
 * Adds sparse tensors in host memory, in their order; the sum is coalesced, its indices ascend.
 * Half precisions are rounded once, after the last. For the sparse all-reduce of backends whose
 * ranks get the tensors of all.
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
    DType dtype = model.dtype();
    long rowBytes = rowLength * dtype.byteSize();
    Map<Long, List<Entry>> places = new TreeMap<>();
    for (Tensor tensor : tensors) {
      if (tensor.indices().size(0) != sparseDims) {
        throw new IllegalArgumentException(
            "sparse dimensions do not match: " + sparseDims + " and " + tensor.indices().size(0));
      }
      MemorySegment values = tensor.values().segment();
      for (long entry = 0; entry < tensor.indices().size(1); entry++) {
        places
            .computeIfAbsent(key(tensor, entry, shape), place -> new ArrayList<>(1))
            .add(new Entry(values, entry * rowBytes));
      }
    }
    Tensor indices = Tensor.allocate(DType.INT64, sparseDims, places.size());
    long[] valueShape = new long[shape.length - sparseDims + 1];
    valueShape[0] = places.size();
    System.arraycopy(shape, sparseDims, valueShape, 1, valueShape.length - 1);
    Tensor sums = Tensor.allocate(dtype, valueShape);
    long row = 0;
    for (Map.Entry<Long, List<Entry>> place : places.entrySet()) {
      long rest = place.getKey();
      for (int d = sparseDims - 1; d >= 0; d--) {
        indices.setFlat(d * (long) places.size() + row, rest % shape[d]);
        rest /= shape[d];
      }
      add(place.getValue(), dtype, sums.segment(), row * rowBytes, rowLength);
      row++;
    }
    return Tensor.sparse(indices, sums, shape);
  }

  /** Is a row of values. */
  private record Entry(MemorySegment values, long offset) {}

  private static void add(
      List<Entry> entries, DType dtype, MemorySegment sums, long offset, long rowLength) {
    Entry first = entries.get(0);
    if (entries.size() == 1) {
      long rowBytes = rowLength * dtype.byteSize();
      MemorySegment.copy(first.values, first.offset, sums, offset, rowBytes);
      return;
    }
    HostReducer.combineAll(
        ReduceOp.Kind.SUM,
        dtype,
        sums,
        offset,
        entries.stream().map(Entry::values).toArray(MemorySegment[]::new),
        entries.stream().mapToLong(Entry::offset).toArray(),
        rowLength);
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
