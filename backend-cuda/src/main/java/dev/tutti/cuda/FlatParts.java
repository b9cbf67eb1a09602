package dev.tutti.cuda;

import dev.tutti.cuda.memory.DeviceBlock;
import dev.tutti.spi.Operation;

/** Lends operations on lists of tensors memory for the parts in one piece. */
final class FlatParts {
  private final CudaDevice device;
  private final NcclLane lane;
  private final int rank;

  /** Puts an operation into its stream that works on such memory. */
  interface Body {
    void run(CudaStream stream, long address);
  }

  FlatParts(CudaDevice device, NcclLane lane, int rank) {
    this.device = device;
    this.lane = lane;
    this.rank = rank;
  }

  /**
   * Lends memory to an operation, which has its turn on the lane meanwhile. It is used in the order
   * of the stream, so it is free again once all is queued.
   *
   * @throws UnsupportedOperationException if the stream is being recorded
   */
  void lend(Operation op, long bytes, Body body) {
    CudaStream stream = lane.begin();
    try {
      DeviceBlock flat = allocate(op, bytes, stream);
      try {
        body.run(stream, flat.address());
      } finally {
        device.allocator().free(flat);
      }
    } finally {
      lane.leave();
    }
  }

  private DeviceBlock allocate(Operation op, long bytes, CudaStream stream) {
    if (stream.isCapturing()) {
      throw new UnsupportedOperationException(
          op.type().label()
              + " of a list on rank "
              + rank
              + " cannot be recorded into a graph, as it needs memory for the parts in one piece;"
              + " the operation of a single tensor can");
    }
    return device.allocator().allocate(bytes, stream.forBlocks());
  }
}
