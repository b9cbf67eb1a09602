package dev.tutti.internal;

import dev.tutti.DType;
import dev.tutti.OpType;
import dev.tutti.ProcessGroup;
import dev.tutti.ReduceOp;
import dev.tutti.Tensor;
import dev.tutti.internal.GroupOperation.BackendCall;
import java.time.Duration;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Says what to run.
 *
 * @param type the operation
 * @param backend where
 * @param timeout deadline from now; {@link ProcessGroup#GROUP_TIMEOUT} takes the group's
 * @param async whether the caller goes on at once
 * @param root the root or peer, or -1
 * @param tag of a message, else 0
 * @param reduceOp what reduces the tensors, or null
 * @param inputs tensors of the caller that are read
 * @param results tensors of the caller that hold the result
 * @param finisher copies staged results back, or null
 * @param call calls the backend
 */
record OperationSpec(
    OpType type,
    BoundBackend backend,
    Duration timeout,
    boolean async,
    int root,
    int tag,
    ReduceOp.@Nullable Kind reduceOp,
    List<Tensor> inputs,
    List<Tensor> results,
    @Nullable Runnable finisher,
    BackendCall call) {

  long timeoutNanos(long groupTimeoutNanos) {
    return timeout.equals(ProcessGroup.GROUP_TIMEOUT)
        ? groupTimeoutNanos
        : Deadlines.nanos(timeout);
  }

  @Nullable DType dtype() {
    Tensor first = firstTensor();
    return first == null ? null : first.dtype();
  }

  /** Returns an input, else a result, else null. */
  @Nullable Tensor firstTensor() {
    if (!inputs.isEmpty()) {
      return inputs.get(0);
    }
    return results.isEmpty() ? null : results.get(0);
  }

  long numel() {
    long numel = 0;
    for (Tensor tensor : inputs.isEmpty() ? results : inputs) {
      numel += tensor.numel();
    }
    return numel;
  }
}
