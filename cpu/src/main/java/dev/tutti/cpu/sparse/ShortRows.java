package dev.tutti.cpu.sparse;

import dev.tutti.DType;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/**
 * Adds rows of few elements one by one, in an array: for a few bytes the calls that copy and add
 * blocks take longer than the work. An element that is alone at its place keeps its bits.
 *
 * @param <A> arrays of the elements
 */
abstract class ShortRows<A> extends SparseRows {
  /** How many elements of sums are made before they are written. */
  static final int BLOCK = 1024;

  private final A values;
  private final A sums;
  private final int length;
  private final ValueLayout layout;

  /**
   * Makes rows.
   *
   * @param length elements of a row, at most {@link #BLOCK}
   * @param values room for the elements of all rows
   * @param sums room for {@link #BLOCK} elements
   * @param layout an element's
   */
  ShortRows(int length, A values, A sums, ValueLayout layout) {
    this.length = length;
    this.values = values;
    this.sums = sums;
    this.layout = layout;
  }

  static ShortRows<?> of(DType dtype, int length, int count) {
    return switch (dtype) {
      case FLOAT32 -> new FloatRows.Float32(length, count);
      case FLOAT64 -> new FloatRows.Float64(length, count);
      case FLOAT16 -> new FloatRows.Float16(length, count);
      case BFLOAT16 -> new FloatRows.Bfloat16(length, count);
      case INT64 -> new IntegerRows.Int64(length, count);
      case INT32 -> new IntegerRows.Int32(length, count);
      case INT16 -> new IntegerRows.Int16(length, count);
      case INT8, UINT8 -> new IntegerRows.Int8(length, count);
      case BOOL -> new IntegerRows.Bool(length, count);
      default -> throw new IllegalArgumentException(dtype.label() + " cannot be reduced");
    };
  }

  @Override
  public final void sum(SparsePlaces places, MemorySegment memory) {
    int step = BLOCK / Math.max(1, length);
    for (int done = 0; done < places.count(); done += step) {
      int end = Math.min(places.count(), done + step);
      add(values, sums, places.order(), places.starts(), done, end, length);
      long offset = (long) done * length * layout.byteSize();
      MemorySegment.copy(sums, 0, memory, layout, offset, (end - done) * length);
    }
  }

  /**
   * Copies elements.
   *
   * @param memory where from, its first element first
   * @param at place of the first among all
   * @param count how many
   */
  final void read(MemorySegment memory, int at, int count) {
    MemorySegment.copy(memory, layout, 0, values, at, count);
  }

  /**
   * Adds the rows of some places.
   *
   * @param values all elements
   * @param sums written from its start
   * @param order rows by place
   * @param starts where those of each place begin
   * @param from first place
   * @param to behind the last place
   * @param length elements of a row
   */
  abstract void add(A values, A sums, int[] order, int[] starts, int from, int to, int length);
}
