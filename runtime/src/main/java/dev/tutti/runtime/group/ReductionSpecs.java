package dev.tutti.runtime.group;

import dev.tutti.AllReduceAlgorithm;
import dev.tutti.CallOptions;
import dev.tutti.Capabilities;
import dev.tutti.OpType;
import dev.tutti.ReduceOp;
import dev.tutti.Tensor;
import dev.tutti.runtime.group.Overlaps.InPlace;
import dev.tutti.runtime.operation.BoundBackend;
import dev.tutti.runtime.operation.GroupIdentity;
import dev.tutti.runtime.operation.OperationSpec;
import dev.tutti.spi.Call;
import java.util.List;
import java.util.Optional;

/** Prepares the operations that reduce. */
final class ReductionSpecs extends OperationSpecs {
  ReductionSpecs(GroupIdentity group, Checks checks, Overlaps overlaps) {
    super(group, checks, overlaps);
  }

  OperationSpec allReduce(Tensor tensor, ReduceOp reduceOp, CallOptions options) {
    OpType op = OpType.ALL_REDUCE;
    checks.given(op, "tensor", tensor);
    if (tensor.isSparse()) {
      return allReduceSparse(tensor, reduceOp, options);
    }
    checks.given(op, "options", options);
    BoundBackend backend = checks.backendFor(op, "tensor", tensor);
    checks.movable(op, "tensor", tensor, backend, true);
    checks.reducible(op, tensor, reduceOp, backend);
    AllReduceAlgorithm algorithm = options.algorithm();
    if (algorithm != AllReduceAlgorithm.AUTO) {
      Optional<String> reason = backend.backend().reasonAgainst(algorithm, tensor, reduceOp);
      if (reason.isPresent()) {
        throw refused(op, backend, algorithm, reason.get());
      }
    }
    return spec(
        backend, options, new Call(op).inPlace(tensor).reduceOp(reduceOp).algorithm(algorithm));
  }

  private OperationSpec allReduceSparse(Tensor tensor, ReduceOp reduceOp, CallOptions options) {
    OpType op = OpType.ALL_REDUCE_SPARSE;
    checks.given(op, "options", options);
    BoundBackend backend = checks.backendFor(op, "tensor", tensor);
    checks.given(op, "reduceOp", reduceOp);
    if (reduceOp.kind() != ReduceOp.Kind.SUM) {
      throw checks.bad(op, "sparse tensors can be reduced by SUM only, not " + reduceOp);
    }
    checks.movable(op, "indices", tensor.indices(), backend, false);
    checks.movable(op, "values", tensor.values(), backend, false);
    checks.reducible(op, tensor.values(), reduceOp, backend);
    checks.indices(op, "tensor", tensor);
    return spec(backend, options, new Call(op).input(tensor).reduceOp(reduceOp));
  }

  OperationSpec allReduceCoalesced(List<Tensor> tensors, ReduceOp reduceOp, CallOptions options) {
    OpType op = OpType.ALL_REDUCE_COALESCED;
    checks.given(op, "options", options);
    BoundBackend backend = first(op, "tensors", tensors);
    for (int i = 0; i < tensors.size(); i++) {
      Tensor tensor = tensors.get(i);
      checks.movable(op, "tensors[" + i + "]", tensor, backend, true);
      checks.same(op, "tensors[" + i + "]", tensor, tensors.get(0));
      checks.reducible(op, tensor, reduceOp, backend);
    }
    overlaps.requireApart(op, "tensor", tensors);
    return spec(backend, options, new Call(op).inPlace(tensors).reduceOp(reduceOp));
  }

  OperationSpec reduce(Tensor tensor, ReduceOp reduceOp, int root, CallOptions options) {
    OpType op = OpType.REDUCE;
    checks.given(op, "options", options);
    BoundBackend backend = checks.backendFor(op, "tensor", tensor);
    checks.rank(op, "root", root);
    checks.movable(op, "tensor", tensor, backend, true);
    checks.reducible(op, tensor, reduceOp, backend);
    return spec(backend, options, new Call(op).inPlace(tensor).reduceOp(reduceOp).root(root));
  }

  OperationSpec reduceScatter(
      Tensor output, List<Tensor> inputs, ReduceOp reduceOp, CallOptions options) {
    OpType op = OpType.REDUCE_SCATTER;
    checks.given(op, "options", options);
    BoundBackend backend = checks.backendFor(op, "output", output);
    checks.movable(op, "output", output, backend, true);
    checks.reducible(op, output, reduceOp, backend);
    checks.count(op, "inputs", inputs, group.size());
    boolean uneven = backend.capabilities().has(Capabilities.Feature.UNEVEN_PARTS);
    for (int r = 0; r < inputs.size(); r++) {
      checks.movable(op, "inputs[" + r + "]", inputs.get(r), backend, false);
      if (uneven && r != group.rank()) {
        checks.same(op, "inputs[" + r + "]", inputs.get(r), output);
      } else {
        checks.sameSize(op, "inputs[" + r + "]", inputs.get(r), output);
      }
    }
    overlaps.require(op, List.of(output), inputs, InPlace.OWN_TENSOR);
    return spec(backend, options, new Call(op).output(output).inputs(inputs).reduceOp(reduceOp));
  }

  OperationSpec reduceScatterInto(
      Tensor output, Tensor input, ReduceOp reduceOp, CallOptions options) {
    OpType op = OpType.REDUCE_SCATTER_INTO;
    checks.given(op, "options", options);
    BoundBackend backend = checks.backendFor(op, "output", output);
    checks.movable(op, "output", output, backend, true);
    checks.movable(op, "input", input, backend, false);
    checks.reducible(op, output, reduceOp, backend);
    checks.times(op, "input", input, "output", output);
    overlaps.require(op, output, input, InPlace.OWN_PART);
    return spec(backend, options, new Call(op).output(output).input(input).reduceOp(reduceOp));
  }

  OperationSpec reduceScatterIntoCoalesced(
      List<Tensor> outputs, List<Tensor> inputs, ReduceOp reduceOp, CallOptions options) {
    OpType op = OpType.REDUCE_SCATTER_INTO_COALESCED;
    checks.given(op, "options", options);
    BoundBackend backend = first(op, "outputs", outputs);
    checks.count(op, "inputs", inputs, outputs.size());
    for (int i = 0; i < outputs.size(); i++) {
      checks.movable(op, "outputs[" + i + "]", outputs.get(i), backend, true);
      checks.movable(op, "inputs[" + i + "]", inputs.get(i), backend, false);
      checks.same(op, "outputs[" + i + "]", outputs.get(i), outputs.get(0));
      checks.reducible(op, outputs.get(i), reduceOp, backend);
      checks.times(op, "inputs[" + i + "]", inputs.get(i), "its output", outputs.get(i));
    }
    overlaps.require(op, outputs, inputs, InPlace.OWN_PART);
    return spec(backend, options, new Call(op).outputs(outputs).inputs(inputs).reduceOp(reduceOp));
  }
}
