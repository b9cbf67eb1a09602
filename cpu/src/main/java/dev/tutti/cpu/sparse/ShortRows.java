package dev.tutti.cpu.sparse;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/**
 * Adds rows of few elements one by one, in an array: for a few bytes, the calls that copy and add
 * blocks take longer than the work itself. An element that is alone at its place keeps its bits.
 *
 * @param <A> the type of the arrays of elements
 */
abstract class ShortRows<A> {
  /** The number of sums that are computed before they are written. */
  static final int BLOCK = 1024;

  private final A values;
  private final A sums;
  private final int length;
  private final ValueLayout layout;

  /**
   * Creates rows.
   *
   * @param length the number of elements in a row, at most {@link #BLOCK}
   * @param values room for the elements of all rows
   * @param sums room for {@link #BLOCK} elements
   * @param layout the layout of an element
   */
  ShortRows(int length, A values, A sums, ValueLayout layout) {
    this.length = length;
    this.values = values;
    this.sums = sums;
    this.layout = layout;
  }

  /** Adds the rows, and writes the sums as one row for each place. */
  final void sum(SparsePlaces places, MemorySegment memory) {
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
   * @param memory the source, which begins with the first element
   * @param at the position of the first element among all
   * @param count the number of elements
   */
  final void read(MemorySegment memory, int at, int count) {
    MemorySegment.copy(memory, layout, 0, values, at, count);
  }

  /**
   * Adds the rows of some places.
   *
   * @param values all elements
   * @param sums the sums, written from the start of the array
   * @param order the rows, ordered by place
   * @param starts where the rows of each place begin
   * @param from the first place
   * @param to the end of the places, exclusive
   * @param length the number of elements in a row
   */
  abstract void add(A values, A sums, int[] order, int[] starts, int from, int to, int length);
}
