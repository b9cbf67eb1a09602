package dev.tutti.internal;

import dev.tutti.OpType;
import dev.tutti.Tensor;
import dev.tutti.spi.Call;
import java.time.Duration;
import java.util.List;

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

  final OperationSpec spec(BoundBackend backend, Duration timeout, boolean async, Call call) {
    checks.timeout(call.type(), timeout);
    return new OperationSpec(
        call, backend, new HostStaging(backend, call, group.rank), timeout, async);
  }
}
