package dev.tutti.cuda.collective;

import dev.tutti.Tensor;
import dev.tutti.cuda.CudaDevice;
import dev.tutti.spi.Operation;
import java.util.List;

/** Checks that reject tensors that a group on a device cannot use. */
public final class TensorChecks {
  private TensorChecks() {}

  /** Returns whether tensors have unequal numbers of elements. */
  public static boolean areUnequal(List<Tensor> tensors) {
    for (Tensor tensor : tensors) {
      if (tensor.numel() != tensors.get(0).numel()) {
        return true;
      }
    }
    return false;
  }

  /** Returns the address of tensors of which each begins where the one before it ends, or 0. */
  static long addressOfAdjacent(List<Tensor> tensors) {
    long begin = 0;
    long end = 0;
    for (Tensor tensor : tensors) {
      long address = tensor.segment().address();
      if (tensor.byteSize() > 0 && begin != 0 && address != end) {
        return 0;
      }
      if (tensor.byteSize() > 0) {
        begin = begin == 0 ? address : begin;
        end = address + tensor.byteSize();
      }
    }
    return begin;
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
