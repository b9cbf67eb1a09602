package dev.tutti.runtime.group;

import dev.tutti.AllReduceAlgorithm;
import dev.tutti.CallOptions;
import dev.tutti.OpType;
import dev.tutti.Tensor;
import dev.tutti.runtime.operation.BoundBackend;
import dev.tutti.runtime.operation.GroupIdentity;
import dev.tutti.runtime.operation.HostStaging;
import dev.tutti.runtime.operation.OperationSpec;
import dev.tutti.spi.Call;
import java.util.List;

/**
 * Checks the arguments of operations, provides stand-ins for tensors that a backend cannot take as
 * they are, and specifies what to run. Sends nothing.
 */
abstract class OperationSpecs {
  final GroupIdentity group;
  final Checks checks;
  final Overlaps overlaps;

  OperationSpecs(GroupIdentity group, Checks checks, Overlaps overlaps) {
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

  final UnsupportedOperationException refused(
      OpType op, BoundBackend backend, AllReduceAlgorithm algorithm, String reason) {
    return checks.unsupported(op, backend, "algorithm " + algorithm.label() + " here: " + reason);
  }

  final OperationSpec spec(BoundBackend backend, CallOptions options, Call call) {
    if (call.type() != OpType.ALL_REDUCE && options.algorithm() != AllReduceAlgorithm.AUTO) {
      throw refused(
          call.type(),
          backend,
          options.algorithm(),
          "only the all-reduce of one dense tensor supports it");
    }
    return new OperationSpec(
        call,
        backend,
        new HostStaging(backend, call, group.rank()),
        options.timeout().orElse(null),
        options.isAsync());
  }
}
