package dev.tutti.cpu.sparse;

import dev.tutti.DType;
import dev.tutti.Tensor;
import java.lang.foreign.MemorySegment;
import java.util.List;
import org.jspecify.annotations.Nullable;

/** The sums of those rows of values of sparse tensors that are at the same place. */
public final class SparseRows {
  /**
   * The maximum number of elements in a row that are added one by one; for longer rows, blocks are
   * faster. Other types than float32 and float64 are rare in rows so short, and take blocks too.
   */
  private static final int SHORT = 8;

  private SparseRows() {}

  /**
   * Adds the rows of tensors, whose type must be reducible.
   *
   * @param tensors the tensors, which must match
   * @param keys the keys of the tensors
   * @param places the rows at each place
   * @param sums the sums, written as one row for each place
   */
  public static void sum(
      List<Tensor> tensors, SparseKeys keys, SparsePlaces places, MemorySegment sums) {
    Tensor model = tensors.get(0).values();
    DType dtype = model.dtype();
    DType real = dtype.toReal();
    long length = dtype.byteSize() / real.byteSize();
    for (int d = 1; d < model.dim(); d++) {
      length *= model.size(d);
    }
    boolean isShort = length <= SHORT && length * keys.count() <= Integer.MAX_VALUE - 8;
    ShortRows<?> rows = isShort ? shortRows(real, (int) length, keys.count()) : null;
    if (rows == null) {
      new LongRows(real, tensors, keys, length * real.byteSize()).sum(places, sums);
      return;
    }
    for (int t = 0; t < tensors.size(); t++) {
      int count = (int) length * (keys.start(t + 1) - keys.start(t));
      rows.read(tensors.get(t).values().segment(), (int) length * keys.start(t), count);
    }
    rows.sum(places, sums);
  }

  private static @Nullable ShortRows<?> shortRows(DType dtype, int length, int count) {
    return switch (dtype) {
      case FLOAT32 -> new FloatRows.Float32(length, count);
      case FLOAT64 -> new FloatRows.Float64(length, count);
      default -> null;
    };
  }
}
