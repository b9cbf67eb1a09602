package dev.tutti.runtime.group;

import dev.tutti.CallOptions;
import dev.tutti.OpType;
import dev.tutti.Tensor;
import dev.tutti.runtime.operation.BoundBackend;
import dev.tutti.runtime.operation.GroupIdentity;
import dev.tutti.runtime.operation.HostStaging;
import dev.tutti.runtime.operation.OperationSpec;
import dev.tutti.spi.Call;
import java.util.List;
import java.util.Optional;
import java.util.Set;

/**
 * Checks the arguments of operations, provides stand-ins for tensors that a backend cannot take as
 * they are, and specifies what to run. Sends nothing.
 */
abstract class OperationSpecs {
  final GroupIdentity group;
  final Checks checks;
  final Overlaps overlaps;

  OperationSpecs(GroupIdentity group, Checks checks) {
    this.group = group;
    this.checks = checks;
    this.overlaps = checks.overlaps();
  }

  final BoundBackend first(OpType op, String argument, List<Tensor> tensors) {
    checks.given(op, argument, tensors);
    if (tensors.isEmpty()) {
      throw checks.bad(op, "%s must not be empty", argument);
    }
    return checks.backendFor(op, argument + "[0]", tensors.get(0));
  }

  /** Checks a list of tensors, one per rank, against the one tensor on the other side. */
  final void perRank(
      OpType op,
      String argument,
      List<Tensor> tensors,
      BoundBackend backend,
      boolean written,
      Tensor like) {
    boolean mayDiffer = op == OpType.ALL_GATHER || op == OpType.REDUCE_SCATTER;
    for (int r = 0; r < tensors.size(); r++) {
      String part = argument + "[" + r + "]";
      checks.movable(op, part, tensors.get(r), backend, written);
      if (mayDiffer && r != group.rank()) {
        checks.same(op, part, tensors.get(r), like);
        if (tensors.get(r).numel() != like.numel()) {
          checks.uneven(op, backend, part, tensors.get(r), like);
        }
      } else {
        checks.sameSize(op, part, tensors.get(r), like);
      }
    }
  }

  /** Specifies an operation whose arguments have been checked, except for the options. */
  final OperationSpec spec(BoundBackend backend, CallOptions options, Call call) {
    OpType op = call.type();
    checks.given(op, "options", options);
    if (options.algorithm().isPresent()) {
      String algorithm = options.algorithm().get();
      Optional<String> reason = reasonAgainst(algorithm, backend, call);
      if (reason.isPresent()) {
        throw checks.unsupported(op, backend, "algorithm " + algorithm + " here: " + reason.get());
      }
      call.algorithm(algorithm);
    }
    return new OperationSpec(
        call,
        backend,
        new HostStaging(backend, call, group.rank()),
        options.timeout().orElse(null),
        options.isAsync());
  }

  private static Optional<String> reasonAgainst(String algorithm, BoundBackend backend, Call call) {
    if (call.type() != OpType.ALL_REDUCE) {
      return Optional.of("only the all-reduce of one dense tensor supports it");
    }
    Set<String> declared = backend.capabilities().algorithms();
    if (declared.isEmpty()) {
      return Optional.of("it offers no choice of algorithms");
    }
    return declared.contains(algorithm)
        ? backend.backend().reasonAgainst(algorithm, call.input(), call.reduceOp())
        : Optional.of("its algorithms are " + String.join(", ", declared));
  }
}
