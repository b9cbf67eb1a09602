package dev.tutti.runtime.group;

import dev.tutti.CallOptions;
import dev.tutti.OpType;
import dev.tutti.Tensor;
import dev.tutti.runtime.group.Overlaps.InPlace;
import dev.tutti.runtime.operation.BoundBackend;
import dev.tutti.runtime.operation.GroupIdentity;
import dev.tutti.runtime.operation.OperationSpec;
import dev.tutti.spi.Call;
import java.util.List;

/** Prepares the operations that only move data. */
final class MovementSpecs extends OperationSpecs {
  MovementSpecs(GroupIdentity group, Checks checks) {
    super(group, checks);
  }

  OperationSpec broadcast(Tensor tensor, int root, CallOptions options) {
    return spec(
        checks.forBroadcast(tensor, root),
        options,
        new Call(OpType.BROADCAST).inPlace(tensor).root(root));
  }

  OperationSpec allGather(List<Tensor> outputs, Tensor input, CallOptions options) {
    OpType op = OpType.ALL_GATHER;
    BoundBackend backend = checks.backendFor(op, "input", input);
    checks.movable(op, "input", input, backend, false);
    checks.count(op, "outputs", outputs, group.size());
    perRank(op, "outputs", outputs, backend, true, input);
    overlaps.require(op, outputs, List.of(input), InPlace.OWN_TENSOR);
    return spec(backend, options, new Call(op).outputs(outputs).input(input));
  }

  OperationSpec allGatherInto(Tensor output, Tensor input, CallOptions options) {
    return spec(
        checks.forAllGatherInto(output, input),
        options,
        new Call(OpType.ALL_GATHER_INTO).output(output).input(input));
  }

  OperationSpec allGatherInto(
      Tensor output, Tensor input, long[] outputSplits, CallOptions options) {
    List<Tensor> rows =
        checks.rows(OpType.ALL_GATHER_INTO, "outputSplits", outputSplits, output, "output");
    return rows.isEmpty() ? allGatherInto(output, input, options) : allGather(rows, input, options);
  }

  OperationSpec allGatherIntoCoalesced(
      List<Tensor> outputs, List<Tensor> inputs, CallOptions options) {
    OpType op = OpType.ALL_GATHER_INTO_COALESCED;
    BoundBackend backend = first(op, "inputs", inputs);
    checks.count(op, "outputs", outputs, inputs.size());
    for (int i = 0; i < inputs.size(); i++) {
      checks.movable(op, "inputs[" + i + "]", inputs.get(i), backend, false);
      checks.movable(op, "outputs[" + i + "]", outputs.get(i), backend, true);
      checks.same(op, "inputs[" + i + "]", inputs.get(i), inputs.get(0));
      checks.times(op, "outputs[" + i + "]", outputs.get(i), "its input", inputs.get(i));
    }
    overlaps.require(op, outputs, inputs, InPlace.OWN_PART);
    return spec(backend, options, new Call(op).outputs(outputs).inputs(inputs));
  }

  OperationSpec gather(List<Tensor> outputs, Tensor input, int root, CallOptions options) {
    OpType op = OpType.GATHER;
    BoundBackend backend = checks.backendFor(op, "input", input);
    checks.rank(op, "root", root);
    checks.movable(op, "input", input, backend, false);
    checks.count(op, "outputs", outputs, root == group.rank() ? group.size() : 0);
    perRank(op, "outputs", outputs, backend, true, input);
    overlaps.require(op, outputs, List.of(input), InPlace.OWN_TENSOR);
    return spec(backend, options, new Call(op).outputs(outputs).input(input).root(root));
  }

  OperationSpec scatter(Tensor output, List<Tensor> inputs, int root, CallOptions options) {
    OpType op = OpType.SCATTER;
    BoundBackend backend = checks.backendFor(op, "output", output);
    checks.rank(op, "root", root);
    checks.movable(op, "output", output, backend, true);
    checks.count(op, "inputs", inputs, root == group.rank() ? group.size() : 0);
    perRank(op, "inputs", inputs, backend, false, output);
    overlaps.require(op, List.of(output), inputs, InPlace.OWN_TENSOR);
    return spec(backend, options, new Call(op).output(output).inputs(inputs).root(root));
  }

  OperationSpec allToAll(List<Tensor> outputs, List<Tensor> inputs, CallOptions options) {
    OpType op = OpType.ALL_TO_ALL;
    checks.count(op, "inputs", inputs, group.size());
    checks.count(op, "outputs", outputs, group.size());
    BoundBackend backend = checks.backendFor(op, "inputs[0]", inputs.get(0));
    for (int r = 0; r < group.size(); r++) {
      checks.movable(op, "inputs[" + r + "]", inputs.get(r), backend, false);
      checks.movable(op, "outputs[" + r + "]", outputs.get(r), backend, true);
      checks.same(op, "inputs[" + r + "]", inputs.get(r), inputs.get(0));
      checks.same(op, "outputs[" + r + "]", outputs.get(r), inputs.get(0));
    }
    checks.sameSize(
        op, "outputs[" + group.rank() + "]", outputs.get(group.rank()), inputs.get(group.rank()));
    overlaps.require(op, outputs, inputs, InPlace.NONE);
    return spec(backend, options, new Call(op).outputs(outputs).inputs(inputs));
  }

  OperationSpec allToAllSingle(
      Tensor output, Tensor input, long[] outputSplits, long[] inputSplits, CallOptions options) {
    OpType op = OpType.ALL_TO_ALL_SINGLE;
    checks.given(op, "input", input);
    checks.given(op, "output", output);
    long[] outputRows = checks.splits(op, "outputSplits", outputSplits, output, "output");
    long[] inputRows = checks.splits(op, "inputSplits", inputSplits, input, "input");
    BoundBackend backend = checks.forAllToAllSingle(output, input, outputRows, inputRows);
    return spec(
        backend, options, new Call(op).output(output).input(input).splits(outputRows, inputRows));
  }

  /**
   * Prepares a message.
   *
   * @param op a send or a receive
   * @param peer the other rank, or -1 for a receive from any rank
   */
  OperationSpec message(OpType op, Tensor tensor, int peer, int tag, CallOptions options) {
    BoundBackend backend = checks.backendFor(op, "tensor", tensor);
    Call call = new Call(op).tag(tag);
    if (op != OpType.RECV_ANY_SOURCE) {
      checks.peer(op, peer);
      call.root(peer);
    }
    checks.tag(op, tag, backend);
    checks.movable(op, "tensor", tensor, backend, op != OpType.SEND);
    return spec(backend, options, op == OpType.SEND ? call.input(tensor) : call.output(tensor));
  }
}
