package dev.tutti.cuda.gloo;

import dev.tutti.Tensor;
import java.util.List;

/**
 * The data that an operation reads or writes on a device: rows of equal length, one for each rank
 * or a single one. A row consists of one or more pieces, one after another.
 */
final class DeviceRows {
  /** The rows of an operation that reads, or writes, nothing here. */
  static final DeviceRows NONE = new DeviceRows(List.of(), new long[0][], new long[1]);

  private final List<Tensor> tensors;

  /** The addresses of the pieces of each row. */
  private final long[][] addresses;

  /** The first element of each piece within its row, followed by the length of a row. */
  private final long[] starts;

  private DeviceRows(List<Tensor> tensors, long[][] addresses, long[] starts) {
    this.tensors = tensors;
    this.addresses = addresses;
    this.starts = starts;
  }

  /** A receiver of pieces at device addresses. */
  interface PieceCall {
    /**
     * Receives a piece.
     *
     * @param address the address on the device
     * @param offset the offset in bytes, if the rows were laid out one after another
     * @param bytes the size of the piece
     */
    void run(long address, long offset, long bytes);
  }

  /**
   * Makes one row of each tensor.
   *
   * @param tensors contiguous tensors of one type and size, or none
   */
  static DeviceRows ofEach(List<Tensor> tensors) {
    if (tensors.isEmpty()) {
      return NONE;
    }
    long[][] addresses = new long[tensors.size()][];
    for (int row = 0; row < addresses.length; row++) {
      addresses[row] = new long[] {tensors.get(row).segment().address()};
    }
    return new DeviceRows(tensors, addresses, new long[] {0, tensors.get(0).numel()});
  }

  /**
   * Makes a single row of all tensors.
   *
   * @param tensors contiguous tensors of one type, at least one
   */
  static DeviceRows ofAll(List<Tensor> tensors) {
    return ofParts(tensors, 1);
  }

  /**
   * Makes rows of equal parts of tensors: each row has the part with its number from every tensor.
   *
   * @param tensors contiguous tensors of one type, at least one
   * @param count the number of parts in each tensor
   */
  static DeviceRows ofParts(List<Tensor> tensors, int count) {
    long[][] addresses = new long[count][tensors.size()];
    long[] starts = new long[tensors.size() + 1];
    for (int piece = 0; piece < tensors.size(); piece++) {
      Tensor tensor = tensors.get(piece);
      for (int row = 0; row < count; row++) {
        addresses[row][piece] = tensor.segment().address() + row * (tensor.byteSize() / count);
      }
      starts[piece + 1] = starts[piece] + tensor.numel() / count;
    }
    return new DeviceRows(tensors, addresses, starts);
  }

  List<Tensor> tensors() {
    return tensors;
  }

  /** Returns the number of rows. */
  int count() {
    return addresses.length;
  }

  /** Returns the number of elements in a row. */
  long numel() {
    return starts[starts.length - 1];
  }

  /**
   * Visits all pieces of one part of each row.
   *
   * @param from the first element of the part within a row
   * @param length the length of the part in elements
   * @param call receives the pieces, with their offsets if the parts were laid out one after
   *     another
   */
  void forEach(long from, long length, PieceCall call) {
    for (int row = 0; row < addresses.length; row++) {
      long elementBytes = tensors.get(0).dtype().byteSize();
      for (int piece = 0; piece + 1 < starts.length; piece++) {
        long first = Math.max(from, starts[piece]);
        long end = Math.min(from + length, starts[piece + 1]);
        if (first < end) {
          call.run(
              addresses[row][piece] + (first - starts[piece]) * elementBytes,
              (row * length + first - from) * elementBytes,
              (end - first) * elementBytes);
        }
      }
    }
  }
}
