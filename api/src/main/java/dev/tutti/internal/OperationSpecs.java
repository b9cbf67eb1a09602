package dev.tutti.internal;

import dev.tutti.OpType;
import dev.tutti.P2pOptions;
import dev.tutti.ReduceOp;
import dev.tutti.Tensor;
import dev.tutti.internal.GroupOperation.BackendCall;
import java.time.Duration;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Checks the arguments of operations, stands in for tensors that a backend cannot take as they are,
 * and says what to run. Sends nothing.
 */
abstract class OperationSpecs {
  final Group group;
  final Checks checks;
  final Overlaps overlaps;

  OperationSpecs(Group group, Checks checks, Overlaps overlaps) {
    this.group = group;
    this.checks = checks;
    this.overlaps = overlaps;
  }

  final BoundBackend first(OpType op, String argument, List<Tensor> tensors) {
    checks.given(op, argument, tensors);
    if (tensors.isEmpty()) {
      throw checks.bad(op, argument + " must not be empty");
    }
    return checks.backendFor(op, argument + "[0]", tensors.get(0));
  }

  final OperationSpec spec(
      OpType op,
      BoundBackend backend,
      Duration timeout,
      boolean async,
      int root,
      List<Tensor> inputs,
      List<Tensor> results,
      HostStaging staging,
      BackendCall call) {
    return whole(op, backend, timeout, async, root, 0, null, inputs, results, staging, call);
  }

  final OperationSpec reduction(
      OpType op,
      BoundBackend backend,
      Duration timeout,
      boolean async,
      int root,
      ReduceOp reduceOp,
      List<Tensor> inputs,
      List<Tensor> results,
      HostStaging staging,
      BackendCall call) {
    return whole(
        op, backend, timeout, async, root, 0, reduceOp.kind(), inputs, results, staging, call);
  }

  final OperationSpec message(
      OpType op,
      BoundBackend backend,
      P2pOptions options,
      int peer,
      List<Tensor> inputs,
      List<Tensor> results,
      HostStaging staging,
      BackendCall call) {
    return whole(
        op,
        backend,
        options.timeout(),
        options.async(),
        peer,
        options.tag(),
        null,
        inputs,
        results,
        staging,
        call);
  }

  private OperationSpec whole(
      OpType op,
      BoundBackend backend,
      Duration timeout,
      boolean async,
      int root,
      int tag,
      ReduceOp.@Nullable Kind reduceOp,
      List<Tensor> inputs,
      List<Tensor> results,
      HostStaging staging,
      BackendCall call) {
    checks.timeout(op, timeout);
    return new OperationSpec(
        op,
        backend,
        timeout,
        async,
        root,
        tag,
        reduceOp,
        List.copyOf(inputs),
        List.copyOf(results),
        staging.finisher(),
        staging.stagedBefore(call));
  }
}
