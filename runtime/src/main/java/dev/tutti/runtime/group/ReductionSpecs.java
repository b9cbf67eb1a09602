package dev.tutti.runtime.group;

import dev.tutti.CallOptions;
import dev.tutti.OpType;
import dev.tutti.ReduceOp;
import dev.tutti.Tensor;
import dev.tutti.runtime.group.Overlaps.InPlace;
import dev.tutti.runtime.operation.BoundBackend;
import dev.tutti.runtime.operation.GroupIdentity;
import dev.tutti.runtime.operation.OperationSpec;
import dev.tutti.spi.Call;
import java.util.List;

/** Prepares the operations that reduce. */
final class ReductionSpecs extends OperationSpecs {
  ReductionSpecs(GroupIdentity group, Checks checks) {
    super(group, checks);
  }

  OperationSpec allReduce(Tensor tensor, ReduceOp reduceOp, CallOptions options) {
    checks.given(OpType.ALL_REDUCE, "tensor", tensor);
    return tensor.isSparse()
        ? allReduceSparse(tensor, reduceOp, options)
        : spec(
            checks.forAllReduce(tensor, reduceOp),
            options,
            new Call(OpType.ALL_REDUCE).inPlace(tensor).reduceOp(reduceOp));
  }

  private OperationSpec allReduceSparse(Tensor tensor, ReduceOp reduceOp, CallOptions options) {
    OpType op = OpType.ALL_REDUCE_SPARSE;
    BoundBackend backend = checks.backendFor(op, "tensor", tensor);
    checks.given(op, "reduceOp", reduceOp);
    if (reduceOp.kind() != ReduceOp.Kind.SUM) {
      throw checks.bad(op, "sparse tensors can be reduced by SUM only, not %s", reduceOp);
    }
    checks.movable(op, "indices", tensor.indices(), backend, false);
    checks.movable(op, "values", tensor.values(), backend, false);
    checks.reducible(op, tensor.values(), reduceOp, backend);
    checks.indices(op, "tensor", tensor);
    return spec(backend, options, new Call(op).input(tensor).reduceOp(reduceOp));
  }

  OperationSpec allReduceCoalesced(List<Tensor> tensors, ReduceOp reduceOp, CallOptions options) {
    OpType op = OpType.ALL_REDUCE_COALESCED;
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
    return spec(
        checks.forReduce(tensor, reduceOp, root),
        options,
        new Call(OpType.REDUCE).inPlace(tensor).reduceOp(reduceOp).root(root));
  }

  OperationSpec reduceScatter(
      Tensor output, List<Tensor> inputs, ReduceOp reduceOp, CallOptions options) {
    OpType op = OpType.REDUCE_SCATTER;
    BoundBackend backend = checks.backendFor(op, "output", output);
    checks.movable(op, "output", output, backend, true);
    checks.reducible(op, output, reduceOp, backend);
    checks.count(op, "inputs", inputs, group.size());
    perRank(op, "inputs", inputs, backend, false, output);
    overlaps.require(op, List.of(output), inputs, InPlace.OWN_TENSOR);
    return spec(backend, options, new Call(op).output(output).inputs(inputs).reduceOp(reduceOp));
  }

  OperationSpec reduceScatterInto(
      Tensor output, Tensor input, ReduceOp reduceOp, CallOptions options) {
    return spec(
        checks.forReduceScatterInto(output, input, reduceOp),
        options,
        new Call(OpType.REDUCE_SCATTER_INTO).output(output).input(input).reduceOp(reduceOp));
  }

  OperationSpec reduceScatterInto(
      Tensor output, Tensor input, long[] inputSplits, ReduceOp reduceOp, CallOptions options) {
    List<Tensor> rows =
        checks.rows(OpType.REDUCE_SCATTER_INTO, "inputSplits", inputSplits, input, "input");
    return rows.isEmpty()
        ? reduceScatterInto(output, input, reduceOp, options)
        : reduceScatter(output, rows, reduceOp, options);
  }

  OperationSpec reduceScatterIntoCoalesced(
      List<Tensor> outputs, List<Tensor> inputs, ReduceOp reduceOp, CallOptions options) {
    OpType op = OpType.REDUCE_SCATTER_INTO_COALESCED;
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
