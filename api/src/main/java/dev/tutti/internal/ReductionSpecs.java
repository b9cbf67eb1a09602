package dev.tutti.internal;

import dev.tutti.AllReduceAlgorithm;
import dev.tutti.AllReduceOptions;
import dev.tutti.Capabilities;
import dev.tutti.OpType;
import dev.tutti.ReduceOp;
import dev.tutti.ReduceOptions;
import dev.tutti.ReduceScatterOptions;
import dev.tutti.Tensor;
import dev.tutti.internal.Overlaps.InPlace;
import java.util.List;

/** Prepares the operations that reduce. */
final class ReductionSpecs extends OperationSpecs {
  ReductionSpecs(Group group, Checks checks, Overlaps overlaps) {
    super(group, checks, overlaps);
  }

  OperationSpec allReduce(Tensor tensor, AllReduceOptions options) {
    OpType op = OpType.ALL_REDUCE;
    checks.given(op, "tensor", tensor);
    if (tensor.isSparse()) {
      return allReduceSparse(tensor, options);
    }
    checks.given(op, "options", options);
    BoundBackend backend = checks.backendFor(op, "tensor", tensor);
    checks.movable(op, "tensor", tensor, backend, true);
    checks.reducible(op, tensor, options.reduceOp(), backend);
    AllReduceAlgorithm algorithm = options.algorithm();
    if (algorithm != AllReduceAlgorithm.AUTO) {
      backend
          .backend()
          .reasonAgainst(algorithm, tensor, options.reduceOp())
          .ifPresent(reason -> refuse(op, backend, algorithm, reason));
    }
    HostStaging staging = new HostStaging(backend);
    Tensor staged = staging.inOut(tensor);
    return reduction(
        op,
        backend,
        options.timeout(),
        options.async(),
        -1,
        options.reduceOp(),
        List.of(tensor),
        List.of(tensor),
        staging,
        (b, o) -> b.allReduce(o, staged, options.reduceOp(), algorithm));
  }

  private void refuse(
      OpType op, BoundBackend backend, AllReduceAlgorithm algorithm, String reason) {
    throw checks.unsupported(op, backend, "algorithm " + algorithm.label() + " here: " + reason);
  }

  /** Refuses what was asked for where it has no meaning. */
  private void requireAuto(OpType op, BoundBackend backend, AllReduceOptions options) {
    if (options.algorithm() != AllReduceAlgorithm.AUTO) {
      refuse(op, backend, options.algorithm(), "it can be asked for with one dense tensor alone");
    }
  }

  private OperationSpec allReduceSparse(Tensor tensor, AllReduceOptions options) {
    OpType op = OpType.ALL_REDUCE_SPARSE;
    checks.given(op, "options", options);
    BoundBackend backend = checks.backendFor(op, "tensor", tensor);
    checks.given(op, "reduceOp", options.reduceOp());
    if (options.reduceOp().kind() != ReduceOp.Kind.SUM) {
      throw checks.bad(op, "sparse tensors are only reduced by SUM, not " + options.reduceOp());
    }
    requireAuto(op, backend, options);
    checks.movable(op, "indices", tensor.indices(), backend, false);
    checks.movable(op, "values", tensor.values(), backend, false);
    checks.reducible(op, tensor.values(), options.reduceOp(), backend);
    checks.indices(op, "tensor", tensor);
    HostStaging staging = new HostStaging(backend);
    Tensor staged =
        Tensor.sparse(
            staging.input(tensor.indices()), staging.input(tensor.values()), tensor.shape());
    return reduction(
        op,
        backend,
        options.timeout(),
        options.async(),
        -1,
        options.reduceOp(),
        List.of(tensor),
        List.of(),
        staging,
        (b, o) -> b.allReduceSparse(o, staged, options.reduceOp()));
  }

  OperationSpec allReduceCoalesced(List<Tensor> tensors, AllReduceOptions options) {
    OpType op = OpType.ALL_REDUCE_COALESCED;
    checks.given(op, "options", options);
    BoundBackend backend = first(op, "tensors", tensors);
    requireAuto(op, backend, options);
    for (int i = 0; i < tensors.size(); i++) {
      Tensor tensor = tensors.get(i);
      checks.movable(op, "tensors[" + i + "]", tensor, backend, true);
      checks.same(op, "tensors[" + i + "]", tensor, tensors.get(0));
      checks.reducible(op, tensor, options.reduceOp(), backend);
    }
    overlaps.requireApart(op, "tensor", tensors);
    HostStaging staging = new HostStaging(backend);
    List<Tensor> staged = staging.inOuts(tensors);
    return reduction(
        op,
        backend,
        options.timeout(),
        options.async(),
        -1,
        options.reduceOp(),
        tensors,
        tensors,
        staging,
        (b, o) -> b.allReduceCoalesced(o, staged, options.reduceOp()));
  }

  OperationSpec reduce(Tensor tensor, ReduceOptions options) {
    OpType op = OpType.REDUCE;
    checks.given(op, "options", options);
    BoundBackend backend = checks.backendFor(op, "tensor", tensor);
    checks.rank(op, "root", options.root());
    checks.movable(op, "tensor", tensor, backend, true);
    checks.reducible(op, tensor, options.reduceOp(), backend);
    HostStaging staging = new HostStaging(backend);
    Tensor staged = staging.inOut(tensor);
    return reduction(
        op,
        backend,
        options.timeout(),
        options.async(),
        options.root(),
        options.reduceOp(),
        List.of(tensor),
        List.of(tensor),
        staging,
        (b, o) -> b.reduce(o, staged, options.reduceOp(), options.root()));
  }

  OperationSpec reduceScatter(Tensor output, List<Tensor> inputs, ReduceScatterOptions options) {
    OpType op = OpType.REDUCE_SCATTER;
    checks.given(op, "options", options);
    BoundBackend backend = checks.backendFor(op, "output", output);
    checks.movable(op, "output", output, backend, true);
    checks.reducible(op, output, options.reduceOp(), backend);
    checks.count(op, "inputs", inputs, group.size);
    boolean uneven = backend.capabilities().has(Capabilities.Feature.UNEVEN_PARTS);
    for (int r = 0; r < inputs.size(); r++) {
      checks.movable(op, "inputs[" + r + "]", inputs.get(r), backend, false);
      if (uneven && r != group.rank) {
        checks.same(op, "inputs[" + r + "]", inputs.get(r), output);
      } else {
        checks.sameSize(op, "inputs[" + r + "]", inputs.get(r), output);
      }
    }
    overlaps.require(op, List.of(output), inputs, InPlace.OWN_TENSOR);
    HostStaging staging = new HostStaging(backend);
    Tensor stagedOutput = staging.output(output);
    List<Tensor> stagedInputs = staging.inputs(inputs);
    return reduction(
        op,
        backend,
        options.timeout(),
        options.async(),
        -1,
        options.reduceOp(),
        inputs,
        List.of(output),
        staging,
        (b, o) -> b.reduceScatter(o, stagedOutput, stagedInputs, options.reduceOp()));
  }

  OperationSpec reduceScatterInto(Tensor output, Tensor input, ReduceScatterOptions options) {
    OpType op = OpType.REDUCE_SCATTER_INTO;
    checks.given(op, "options", options);
    BoundBackend backend = checks.backendFor(op, "output", output);
    checks.movable(op, "output", output, backend, true);
    checks.movable(op, "input", input, backend, false);
    checks.reducible(op, output, options.reduceOp(), backend);
    checks.times(op, "input", input, "output", output);
    overlaps.require(op, output, input, InPlace.OWN_PART);
    HostStaging staging = new HostStaging(backend);
    Tensor stagedOutput = staging.output(output);
    Tensor stagedInput = staging.input(input);
    return reduction(
        op,
        backend,
        options.timeout(),
        options.async(),
        -1,
        options.reduceOp(),
        List.of(input),
        List.of(output),
        staging,
        (b, o) -> b.reduceScatterInto(o, stagedOutput, stagedInput, options.reduceOp()));
  }

  OperationSpec reduceScatterIntoCoalesced(
      List<Tensor> outputs, List<Tensor> inputs, ReduceScatterOptions options) {
    OpType op = OpType.REDUCE_SCATTER_COALESCED;
    checks.given(op, "options", options);
    BoundBackend backend = first(op, "outputs", outputs);
    checks.count(op, "inputs", inputs, outputs.size());
    for (int i = 0; i < outputs.size(); i++) {
      checks.movable(op, "outputs[" + i + "]", outputs.get(i), backend, true);
      checks.movable(op, "inputs[" + i + "]", inputs.get(i), backend, false);
      checks.same(op, "outputs[" + i + "]", outputs.get(i), outputs.get(0));
      checks.reducible(op, outputs.get(i), options.reduceOp(), backend);
      checks.times(op, "inputs[" + i + "]", inputs.get(i), "its output", outputs.get(i));
    }
    overlaps.require(op, outputs, inputs, InPlace.OWN_PART);
    HostStaging staging = new HostStaging(backend);
    List<Tensor> stagedOutputs = staging.outputs(outputs);
    List<Tensor> stagedInputs = staging.inputs(inputs);
    return reduction(
        op,
        backend,
        options.timeout(),
        options.async(),
        -1,
        options.reduceOp(),
        inputs,
        outputs,
        staging,
        (b, o) -> b.reduceScatterIntoCoalesced(o, stagedOutputs, stagedInputs, options.reduceOp()));
  }
}
