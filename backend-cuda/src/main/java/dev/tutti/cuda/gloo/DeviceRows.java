package dev.tutti.cuda.gloo;

import dev.tutti.Tensor;
import java.util.List;

/**
 * What an operation reads or writes on a device: rows of one length, one for each rank or one
 * alone. A row lies in one piece or in several, one behind the other.
 */
final class DeviceRows {
  /** What an operation has that reads, or writes, nothing here. */
  static final DeviceRows NONE = new DeviceRows(List.of(), new long[0][], new long[1]);

  private final List<Tensor> tensors;

  /** The addresses of the pieces of each row. */
  private final long[][] addresses;

  /** The first elements of the pieces in their row, and the length of a row. */
  private final long[] starts;

  private DeviceRows(List<Tensor> tensors, long[][] addresses, long[] starts) {
    this.tensors = tensors;
    this.addresses = addresses;
    this.starts = starts;
  }

  /** Takes something that lies at an address of the device. */
  interface PieceCall {
    /**
     * Takes a piece.
     *
     * @param address on the device
     * @param offset in bytes, where the rows lie one behind the other
     * @param bytes of the piece
     */
    void run(long address, long offset, long bytes);
  }

  /**
   * Takes a row for each tensor.
   *
   * @param tensors contiguous, of one type and size, or none
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
   * Takes one row of all tensors.
   *
   * @param tensors contiguous, of one type, at least one
   */
  static DeviceRows ofAll(List<Tensor> tensors) {
    return ofParts(tensors, 1);
  }

  /**
   * Takes equal parts of tensors: a row has the part of that number of each tensor.
   *
   * @param tensors contiguous, of one type, at least one
   * @param count how many parts each has
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

  /** Returns how many rows there are. */
  int count() {
    return addresses.length;
  }

  /** Returns the elements of a row. */
  long numel() {
    return starts[starts.length - 1];
  }

  /**
   * Visits all pieces of a part of each row.
   *
   * @param from the first element of a row
   * @param length of the part, in elements
   * @param call takes them, with offsets where the parts lie one behind the other
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
