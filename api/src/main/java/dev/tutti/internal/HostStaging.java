package dev.tutti.internal;

import dev.tutti.Tensor;
import dev.tutti.internal.GroupOperation.BackendCall;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Stands in for tensors that a backend cannot take as they are, strided or in the Java heap: copies
 * them when the operation starts, not when it is issued, since an earlier operation may still write
 * them; and copies results back.
 */
final class HostStaging {
  private final boolean stridedTaken;
  private final List<Copy> copiesIn = new ArrayList<>(0);
  private final List<Copy> copiesBack = new ArrayList<>(0);

  private record Copy(Tensor from, Tensor to) {
    void run() {
      to.copyFrom(from);
    }
  }

  HostStaging(BoundBackend backend) {
    stridedTaken = backend.capabilities().has(dev.tutti.Capabilities.Feature.STRIDED_TENSORS);
  }

  static boolean isNeeded(Tensor tensor) {
    return !tensor.isContiguous() || (tensor.device().isCpu() && !tensor.segment().isNative());
  }

  /** Returns what the backend reads. */
  Tensor input(Tensor tensor) {
    return taken(tensor) ? tensor : staged(tensor, true, false);
  }

  /** Returns what the backend writes. */
  Tensor output(Tensor tensor) {
    return taken(tensor) ? tensor : staged(tensor, false, true);
  }

  /** Returns what the backend reads and writes. */
  Tensor inOut(Tensor tensor) {
    return taken(tensor) ? tensor : staged(tensor, true, true);
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

  /** Returns a call that copies what the backend reads and then does the given one. */
  BackendCall stagedBefore(BackendCall call) {
    if (copiesIn.isEmpty()) {
      return call;
    }
    return (backend, op) -> {
      copiesIn.forEach(Copy::run);
      call.run(backend, op);
    };
  }

  /** Returns what copies the results back, or null if there is nothing to copy. */
  @Nullable Runnable finisher() {
    return copiesBack.isEmpty() ? null : () -> copiesBack.forEach(Copy::run);
  }

  private boolean taken(Tensor tensor) {
    return !isNeeded(tensor)
        || (stridedTaken && (!tensor.device().isCpu() || tensor.segment().isNative()));
  }

  private Tensor staged(Tensor tensor, boolean read, boolean written) {
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
