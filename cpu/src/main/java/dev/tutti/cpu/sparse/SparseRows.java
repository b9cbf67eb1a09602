package dev.tutti.cpu.sparse;

import dev.tutti.DType;
import dev.tutti.Tensor;
import java.lang.foreign.MemorySegment;
import java.util.List;

/** Adds the rows of values of sparse tensors that are at one place. */
public abstract class SparseRows {
  /** The most elements of a row that are added one by one; in longer ones blocks are faster. */
  private static final int SHORT = 8;

  /**
   * Prepares for the rows of tensors, whose type is reducible.
   *
   * @param tensors match
   * @param keys of the tensors
   */
  public static SparseRows of(List<Tensor> tensors, SparseKeys keys) {
    Tensor model = tensors.get(0).values();
    DType dtype = model.dtype();
    DType real = dtype.toReal();
    long length = dtype.byteSize() / real.byteSize();
    for (int d = 1; d < model.dimensions(); d++) {
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
   * Adds up.
   *
   * @param places which rows are at each place
   * @param sums written, a row for each place
   */
  public abstract void sum(SparsePlaces places, MemorySegment sums);
}
