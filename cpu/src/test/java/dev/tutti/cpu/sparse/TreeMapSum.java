package dev.tutti.cpu.sparse;

import dev.tutti.DType;
import dev.tutti.ReduceOp;
import dev.tutti.Tensor;
import dev.tutti.cpu.HostReducer;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/** A straightforward sum of sparse tensors, with a list of rows for each place. */
public final class TreeMapSum {
  private TreeMapSum() {}

  /** A row of values. */
  private record Entry(MemorySegment values, long offset) {}

  public static Tensor of(List<Tensor> tensors) {
    Tensor model = tensors.get(0);
    int sparseDims = (int) model.indices().size(0);
    long[] shape = model.shape();
    long rowLength = 1;
    for (int d = sparseDims; d < shape.length; d++) {
      rowLength *= shape[d];
    }
    long rowBytes = rowLength * model.dtype().byteSize();
    Map<Long, List<Entry>> places = new TreeMap<>();
    for (Tensor tensor : tensors) {
      Tensor indices = tensor.indices();
      for (long entry = 0; entry < indices.size(1); entry++) {
        long key = 0;
        for (int d = 0; d < sparseDims; d++) {
          key = key * shape[d] + indices.getLong(d * indices.size(1) + entry);
        }
        places
            .computeIfAbsent(key, place -> new ArrayList<>(1))
            .add(new Entry(tensor.values().segment(), entry * rowBytes));
      }
    }
    Tensor indices = Tensor.allocate(DType.INT64, sparseDims, places.size());
    long[] valueShape = model.values().shape();
    valueShape[0] = places.size();
    Tensor sums = Tensor.allocate(model.dtype(), valueShape);
    long row = 0;
    for (Map.Entry<Long, List<Entry>> place : places.entrySet()) {
      long rest = place.getKey();
      for (int d = sparseDims - 1; d >= 0; d--) {
        indices.setLong(d * (long) places.size() + row, rest % shape[d]);
        rest /= shape[d];
      }
      add(place.getValue(), model.dtype(), sums.segment(), row * rowBytes, rowLength);
      row++;
    }
    return Tensor.sparse(indices, sums, shape);
  }

  private static void add(
      List<Entry> entries, DType dtype, MemorySegment sums, long offset, long rowLength) {
    Entry first = entries.get(0);
    if (entries.size() == 1) {
      MemorySegment.copy(first.values, first.offset, sums, offset, rowLength * dtype.byteSize());
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
}
