package dev.tutti.cuda.gloo;

import dev.tutti.DType;
import dev.tutti.Tensor;
import dev.tutti.cuda.memory.PinnedBlock;
import java.util.List;
import org.jspecify.annotations.Nullable;

/** A part of each of some rows of a device, with its stand-in on the host. */
final class HostPart {
  private static final Tensor NOTHING = Tensor.allocate(DType.UINT8, 0);

  private final DeviceRows rows;
  private final long from;
  private final long length;
  private final @Nullable PinnedBlock block;
  private final Tensor host;

  /** Says whether the host gets it. */
  final boolean isRead;

  /** Says whether the device gets it back. */
  final boolean isResult;

  /** Says that nobody can tell when the device is done with it. */
  boolean isLost;

  /**
   * Creates a part.
   *
   * @param rows of the device
   * @param from the first element of each row
   * @param length elements of each row
   * @param block room for them, or null if there are none
   * @param isRead whether the host gets it
   * @param isResult whether the device gets it back
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

  /** Returns the bytes of a part of each row. */
  static long bytes(DeviceRows rows, long length) {
    return rows.count() == 0 ? 0 : rows.tensors().get(0).dtype().byteSize() * length * rows.count();
  }

  /**
   * Returns it on the host: the parts of the rows one behind the other, or a whole tensor in its
   * shape.
   */
  Tensor host() {
    return host;
  }

  /** Returns the tensors of the device. */
  List<Tensor> tensors() {
    return rows.tensors();
  }

  @Nullable PinnedBlock block() {
    return block;
  }

  /** Visits all pieces of it, with their places in the block. */
  void forEach(DeviceRows.PieceCall call) {
    rows.forEach(from, length, call);
  }
}
