package dev.tutti.spark;

import dev.tutti.DType;
import dev.tutti.Tensor;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Iterator;
import java.util.NoSuchElementException;

/**
 * An iterator that packs the rows of a partition into dense tensors of shape {@code [rows,
 * columns]}; the last one may have fewer rows. Each tensor has its own memory, from {@link
 * Tensor#allocate}, so collectives can use it directly. Not thread-safe.
 *
 * @param <T> the type of the rows
 */
public final class RowBatches<T> implements Iterator<Tensor> {
  /**
   * A writer of rows into memory.
   *
   * @param <T> the type of the row
   */
  @FunctionalInterface
  public interface RowWriter<T> {
    /**
     * Writes all columns of a row.
     *
     * @param row the row to write
     * @param target the row's place in the batch, initially zero; its size is columns times the
     *     bytes of an element
     */
    void write(T row, MemorySegment target);
  }

  private final Iterator<? extends T> rows;
  private final DType dtype;
  private final long columns;
  private final long batchRows;
  private final RowWriter<? super T> writer;

  private RowBatches(
      Iterator<? extends T> rows,
      DType dtype,
      long columns,
      long batchRows,
      RowWriter<? super T> writer) {
    if (columns < 1 || batchRows < 1) {
      throw new IllegalArgumentException(
          "columns and batchRows must be at least 1, not %d and %d".formatted(columns, batchRows));
    }
    this.rows = rows;
    this.dtype = dtype;
    this.columns = columns;
    this.batchRows = batchRows;
    this.writer = writer;
  }

  /**
   * Packs rows of any type.
   *
   * @param rows the rows of the partition, read as batches are requested
   * @param dtype the type of the elements
   * @param columns the number of elements in a row, at least 1
   * @param batchRows the number of rows in a batch, at least 1
   * @param writer the writer of one row
   * @param <T> the type of the rows
   * @throws IllegalArgumentException if columns or batchRows is less than 1
   */
  public static <T> RowBatches<T> of(
      Iterator<? extends T> rows,
      DType dtype,
      long columns,
      long batchRows,
      RowWriter<? super T> writer) {
    return new RowBatches<>(rows, dtype, columns, batchRows, writer);
  }

  /**
   * Packs rows of floats.
   *
   * @param rows the rows, each of {@code columns} elements, read as batches are requested
   * @param columns the number of elements in a row, at least 1
   * @param batchRows the number of rows in a batch, at least 1
   * @throws IllegalArgumentException if columns or batchRows is less than 1
   */
  public static RowBatches<float[]> ofFloats(Iterator<float[]> rows, int columns, int batchRows) {
    return of(
        rows,
        DType.FLOAT32,
        columns,
        batchRows,
        (row, target) -> {
          checkLength(row.length, columns);
          MemorySegment.copy(row, 0, target, ValueLayout.JAVA_FLOAT, 0, columns);
        });
  }

  /**
   * Packs rows of doubles.
   *
   * @param rows the rows, each of {@code columns} elements, read as batches are requested
   * @param columns the number of elements in a row, at least 1
   * @param batchRows the number of rows in a batch, at least 1
   * @throws IllegalArgumentException if columns or batchRows is less than 1
   */
  public static RowBatches<double[]> ofDoubles(
      Iterator<double[]> rows, int columns, int batchRows) {
    return of(
        rows,
        DType.FLOAT64,
        columns,
        batchRows,
        (row, target) -> {
          checkLength(row.length, columns);
          MemorySegment.copy(row, 0, target, ValueLayout.JAVA_DOUBLE, 0, columns);
        });
  }

  @Override
  public boolean hasNext() {
    return rows.hasNext();
  }

  /**
   * Returns the next batch.
   *
   * @throws NoSuchElementException if there are no more rows
   * @throws IllegalArgumentException if a row does not have as many elements as there are columns
   */
  @Override
  public Tensor next() {
    if (!rows.hasNext()) {
      throw new NoSuchElementException("no more rows");
    }
    Tensor batch = Tensor.allocate(dtype, batchRows, columns);
    MemorySegment memory = batch.segment();
    long rowBytes = columns * dtype.byteSize();
    long count = 0;
    while (count < batchRows && rows.hasNext()) {
      writer.write(rows.next(), memory.asSlice(count * rowBytes, rowBytes));
      count++;
    }
    return count == batchRows ? batch : batch.narrow(0, 0, count);
  }

  private static void checkLength(int length, int columns) {
    if (length != columns) {
      throw new IllegalArgumentException(
          "a row has %d elements, not %d".formatted(length, columns));
    }
  }
}
