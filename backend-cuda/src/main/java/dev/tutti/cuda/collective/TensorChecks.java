package dev.tutti.cuda.collective;

import dev.tutti.Tensor;
import dev.tutti.cuda.CudaDevice;
import dev.tutti.spi.Operation;
import java.util.List;

/** Checks that reject tensors that a group on a device cannot use. */
public final class TensorChecks {
  private TensorChecks() {}

  /** Tells whether tensors have unequal numbers of elements. */
  public static boolean areUnequal(List<Tensor> tensors) {
    for (Tensor tensor : tensors) {
      if (tensor.numel() != tensors.get(0).numel()) {
        return true;
      }
    }
    return false;
  }

  /**
   * Throws if a tensor is on another device, or its memory was freed.
   *
   * @param op the operation to perform
   * @param tensor the tensor
   * @param device the group's device on this rank
   * @param rank this rank's number
   */
  public static void device(Operation op, Tensor tensor, CudaDevice device, int rank) {
    if (tensor.device().index() != device.index()) {
      throw new UnsupportedOperationException(
          "%s on rank %s: the group uses %s on this rank, but the tensor is %s"
              .formatted(op.type().label(), rank, device, tensor.describe()));
    }
    if (!tensor.segment().scope().isAlive()) {
      throw new UnsupportedOperationException(
          "%s on rank %s: the memory of %s was freed"
              .formatted(op.type().label(), rank, tensor.describe()));
    }
  }
}
