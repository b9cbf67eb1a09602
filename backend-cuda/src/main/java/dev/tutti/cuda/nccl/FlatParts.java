package dev.tutti.cuda.nccl;

import dev.tutti.cuda.CudaDevice;
import dev.tutti.cuda.CudaStream;
import dev.tutti.cuda.access.Parts;
import dev.tutti.cuda.memory.DeviceBlock;
import dev.tutti.spi.Operation;

/** A lender of contiguous memory that holds the parts of operations on lists of tensors. */
final class FlatParts {
  private final CudaDevice device;
  private final NcclLauncher launcher;
  private final int rank;

  /** An action that enqueues an operation on such memory into its stream. */
  interface FlatAction {
    void run(CudaStream stream, long address);
  }

  FlatParts(CudaDevice device, NcclLauncher launcher, int rank) {
    this.device = device;
    this.launcher = launcher;
    this.rank = rank;
  }

  /**
   * Lends memory to an operation, which holds the launcher's turn meanwhile. The memory is used in
   * stream order, so it is free again once everything is enqueued.
   *
   * @throws UnsupportedOperationException if the stream is being captured into a graph
   */
  void lend(Operation op, long bytes, FlatAction body) {
    CudaStream stream = launcher.begin();
    try {
      DeviceBlock flat = allocate(op, bytes, stream);
      try {
        body.run(stream, flat.address());
      } finally {
        Parts.of(device).allocator().free(flat);
      }
    } finally {
      launcher.leave();
    }
  }

  private DeviceBlock allocate(Operation op, long bytes, CudaStream stream) {
    if (stream.isCapturing()) {
      throw new UnsupportedOperationException(
          ("%s of a list on rank %s cannot be captured into a graph because it needs contiguous"
                  + " memory for the parts; use the single-tensor operation")
              .formatted(op.type().label(), rank));
    }
    return Parts.of(device).allocator().allocate(bytes, Parts.of(stream));
  }
}
