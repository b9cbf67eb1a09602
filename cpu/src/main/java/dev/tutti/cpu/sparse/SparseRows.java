package dev.tutti.cpu.sparse;

import dev.tutti.DType;
import dev.tutti.Tensor;
import java.lang.foreign.MemorySegment;
import java.util.List;

/** Adds the rows of values of sparse tensors that are at the same place. */
public abstract class SparseRows {
  /**
   * The maximum number of elements in a row that are added one by one; for longer rows, blocks are
   * faster.
   */
  private static final int SHORT = 8;

  /**
   * Prepares the rows of tensors, whose type must be reducible.
   *
   * @param tensors the tensors, which must match
   * @param keys the keys of the tensors
   */
  public static SparseRows of(List<Tensor> tensors, SparseKeys keys) {
    Tensor model = tensors.get(0).values();
    DType dtype = model.dtype();
    DType real = dtype.toReal();
    long length = dtype.byteSize() / real.byteSize();
    for (int d = 1; d < model.dim(); d++) {
      length *= model.size(d);
    }
    if (length > SHORT || length * keys.count() > Integer.MAX_VALUE - 8) {
      return new LongRows(real, tensors, keys, length * real.byteSize());
    }
    ShortRows<?> rows = ShortRows.of(real, (int) length, keys.count());
    for (int t = 0; t < tensors.size(); t++) {
      int count = (int) length * (keys.start(t + 1) - keys.start(t));
      rows.read(tensors.get(t).values().segment(), (int) length * keys.start(t), count);
    }
    return rows;
  }

  /**
   * Adds the rows.
   *
   * @param places the rows at each place
   * @param sums the sums, written as one row for each place
   */
  public abstract void sum(SparsePlaces places, MemorySegment sums);
}
