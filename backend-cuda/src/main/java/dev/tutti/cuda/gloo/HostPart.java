package dev.tutti.cuda.gloo;

import dev.tutti.DType;
import dev.tutti.Tensor;
import dev.tutti.cuda.memory.PinnedBlock;
import java.util.List;
import org.jspecify.annotations.Nullable;

/** A part of each of some rows on a device, with its counterpart on the host. */
final class HostPart {
  private static final Tensor NOTHING = Tensor.allocate(DType.UINT8, 0);

  private final DeviceRows rows;
  private final long from;
  private final long length;
  private final @Nullable PinnedBlock block;
  private final Tensor host;

  /** Whether the part is copied to the host. */
  final boolean isRead;

  /** Whether the part is copied back to the device. */
  final boolean isResult;

  /** Whether it is unknown when the device is done with the part. */
  boolean isLost;

  /**
   * Creates a part.
   *
   * @param rows the rows on the device
   * @param from the first element within each row
   * @param length the number of elements in each row
   * @param block memory for the elements, or null if there are none
   * @param isRead whether the part is copied to the host
   * @param isResult whether the part is copied back to the device
   */
  HostPart(
      DeviceRows rows,
      long from,
      long length,
      @Nullable PinnedBlock block,
      boolean isRead,
      boolean isResult) {
    this.rows = rows;
    this.from = from;
    this.length = length;
    this.block = block;
    this.isRead = isRead;
    this.isResult = isResult;
    this.host = host(rows, length, block);
  }

  private static Tensor host(DeviceRows rows, long length, @Nullable PinnedBlock block) {
    if (rows.tensors().isEmpty()) {
      return NOTHING;
    }
    Tensor first = rows.tensors().get(0);
    boolean isWhole = rows.tensors().size() == 1 && length * rows.count() == first.numel();
    long[] shape = isWhole ? first.shape() : new long[] {length * rows.count()};
    if (block == null) {
      return Tensor.allocate(first.dtype(), shape);
    }
    long bytes = bytes(rows, length);
    return Tensor.wrap(block.segment().asSlice(0, bytes), first.dtype(), shape);
  }

  /** Returns the size in bytes of a part of the given length from each row. */
  static long bytes(DeviceRows rows, long length) {
    return rows.count() == 0 ? 0 : rows.tensors().get(0).dtype().byteSize() * length * rows.count();
  }

  /**
   * Returns the part on the host: the parts of the rows one after another, or a whole tensor in its
   * shape.
   */
  Tensor host() {
    return host;
  }

  /** Returns the tensors on the device. */
  List<Tensor> tensors() {
    return rows.tensors();
  }

  @Nullable PinnedBlock block() {
    return block;
  }

  /** Visits all pieces of the part, with their offsets in the block. */
  void forEach(DeviceRows.PieceCall call) {
    rows.forEach(from, length, call);
  }
}
