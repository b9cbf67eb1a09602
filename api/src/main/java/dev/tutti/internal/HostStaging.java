package dev.tutti.internal;

import dev.tutti.Tensor;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Stands in for tensors that a backend cannot take as they are, strided or in the Java heap, and
 * copies results back.
 */
final class HostStaging {
  private final boolean stridedTaken;
  private @Nullable List<Tensor[]> copiesBack;

  HostStaging(BoundBackend backend) {
    stridedTaken = backend.capabilities().has(dev.tutti.Capabilities.Feature.STRIDED_TENSORS);
  }

  static boolean isNeeded(Tensor tensor) {
    return !tensor.isContiguous() || (tensor.device().isCpu() && !tensor.segment().isNative());
  }

  /** Returns what the backend reads. */
  Tensor input(Tensor tensor) {
    return taken(tensor) ? tensor : tensor.copy();
  }

  /** Returns what the backend writes. */
  Tensor output(Tensor tensor) {
    if (taken(tensor)) {
      return tensor;
    }
    Tensor staged = Tensor.allocate(tensor.dtype(), tensor.shape());
    copyBack(staged, tensor);
    return staged;
  }

  /** Returns what the backend reads and writes. */
  Tensor inOut(Tensor tensor) {
    if (taken(tensor)) {
      return tensor;
    }
    Tensor staged = tensor.copy();
    copyBack(staged, tensor);
    return staged;
  }

  List<Tensor> inputs(List<Tensor> tensors) {
    return tensors.stream().map(this::input).toList();
  }

  List<Tensor> outputs(List<Tensor> tensors) {
    return tensors.stream().map(this::output).toList();
  }

  List<Tensor> inOuts(List<Tensor> tensors) {
    return tensors.stream().map(this::inOut).toList();
  }

  /** Returns what copies the results back, or null if there is nothing to copy. */
  @Nullable Runnable finisher() {
    List<Tensor[]> copies = copiesBack;
    if (copies == null) {
      return null;
    }
    return () -> {
      for (Tensor[] copy : copies) {
        copy[1].copyFrom(copy[0]);
      }
    };
  }

  private boolean taken(Tensor tensor) {
    return !isNeeded(tensor)
        || (stridedTaken && (!tensor.device().isCpu() || tensor.segment().isNative()));
  }

  private void copyBack(Tensor staged, Tensor target) {
    List<Tensor[]> copies = copiesBack;
    if (copies == null) {
      copies = new ArrayList<>();
      copiesBack = copies;
    }
    copies.add(new Tensor[] {staged, target});
  }
}
