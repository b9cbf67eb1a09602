package dev.tutti.runtime.operation;

import dev.tutti.Capabilities;
import dev.tutti.Capabilities.Feature;
import dev.tutti.OpType;
import dev.tutti.Tensor;
import dev.tutti.spi.Call;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Stands in for tensors that a backend cannot take as they are, because they are strided or in the
 * Java heap. Copies them when the operation starts rather than when it is issued, since an earlier
 * operation may still write them, and copies results back.
 */
public final class HostStaging {
  private final boolean stridedTaken;
  private final Call call;
  private final List<Copy> copiesIn = new ArrayList<>(0);
  private final List<Copy> copiesBack = new ArrayList<>(0);

  private record Copy(Tensor from, Tensor to) {
    void run() {
      to.copyFrom(from);
    }
  }

  /**
   * Allocates stand-ins for the tensors of a call.
   *
   * @param rank this rank; the root of a broadcast only reads its tensor
   */
  public HostStaging(BoundBackend backend, Call given, int rank) {
    Capabilities capabilities = backend.capabilities();
    stridedTaken = capabilities.has(Feature.STRIDED_TENSORS);
    // A backend that moves no data may leave its outputs as they are.
    boolean isKept = !backend.movesData();
    if (areTaken(given.inputs()) && areTaken(given.outputs())) {
      call = given;
    } else {
      boolean isBack =
          given.isInPlace() && !(given.type() == OpType.BROADCAST && given.root() == rank);
      call =
          given.withTensors(
              given.inputs().stream().map(tensor -> input(tensor, isBack)).toList(),
              given.isInPlace()
                  ? List.of()
                  : given.outputs().stream().map(tensor -> staged(tensor, isKept, true)).toList());
    }
  }

  /** Returns the call that the backend receives. */
  public Call call() {
    return call;
  }

  /** Returns whether there are backends that cannot take a tensor as it is. */
  public static boolean isNeeded(Tensor tensor) {
    return !tensor.isContiguous() || (tensor.device().isCpu() && !tensor.segment().isNative());
  }

  /** Copies the tensors that the backend reads. */
  public void copyIn() {
    copiesIn.forEach(Copy::run);
  }

  /** Returns the step that copies the results back, or null if there is nothing to copy. */
  @Nullable
  public Runnable finisher() {
    return copiesBack.isEmpty() ? null : () -> copiesBack.forEach(Copy::run);
  }

  private boolean areTaken(List<Tensor> tensors) {
    for (Tensor tensor : tensors) {
      if (!isTaken(tensor)) {
        return false;
      }
    }
    return true;
  }

  private boolean isTaken(Tensor tensor) {
    if (tensor.isSparse()) {
      return isTaken(tensor.indices()) && isTaken(tensor.values());
    }
    return !isNeeded(tensor)
        || (stridedTaken && (!tensor.device().isCpu() || tensor.segment().isNative()));
  }

  private Tensor input(Tensor tensor, boolean written) {
    return tensor.isSparse()
        ? Tensor.sparse(
            staged(tensor.indices(), true, false),
            staged(tensor.values(), true, false),
            tensor.shape())
        : staged(tensor, true, written);
  }

  private Tensor staged(Tensor tensor, boolean read, boolean written) {
    if (isTaken(tensor)) {
      return tensor;
    }
    Tensor staged = Tensor.allocate(tensor.dtype(), tensor.shape());
    if (read) {
      copiesIn.add(new Copy(tensor, staged));
    }
    if (written) {
      copiesBack.add(new Copy(staged, tensor));
    }
    return staged;
  }
}
