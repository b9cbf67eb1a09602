package dev.tutti.runtime.group;

import dev.tutti.CallOptions;
import dev.tutti.OpType;
import dev.tutti.ReduceOp;
import dev.tutti.Tensor;
import dev.tutti.runtime.group.Overlaps.InPlace;
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
final class OperationSpecs {
  private final GroupIdentity group;
  private final Checks checks;
  private final Overlaps overlaps;
  private final Splits splits;

  OperationSpecs(GroupIdentity group, Checks checks) {
    this.group = group;
    this.checks = checks;
    this.overlaps = checks.overlaps();
    this.splits = new Splits(checks, group.size());
  }

  Splits splits() {
    return splits;
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
    BoundBackend backend = forParts(op, output, inputs, group.size(), false);
    checks.reducible(op, output, reduceOp, backend);
    return spec(backend, options, new Call(op).output(output).inputs(inputs).reduceOp(reduceOp));
  }

  OperationSpec reduceScatterInto(
      Tensor output, Tensor input, long[] inputSplits, ReduceOp reduceOp, CallOptions options) {
    OpType op = OpType.REDUCE_SCATTER_INTO;
    long[] rows = splits.orNone(op, "inputSplits", inputSplits, input, "input");
    return spec(
        checks.forReduceScatterInto(output, input, rows, reduceOp),
        options,
        new Call(op).output(output).input(input).splits(Splits.NONE, rows).reduceOp(reduceOp));
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

  OperationSpec broadcast(Tensor tensor, int root, CallOptions options) {
    return spec(
        checks.forBroadcast(tensor, root),
        options,
        new Call(OpType.BROADCAST).inPlace(tensor).root(root));
  }

  OperationSpec allGather(List<Tensor> outputs, Tensor input, CallOptions options) {
    OpType op = OpType.ALL_GATHER;
    BoundBackend backend = forParts(op, input, outputs, group.size(), true);
    return spec(backend, options, new Call(op).outputs(outputs).input(input));
  }

  OperationSpec allGatherInto(
      Tensor output, Tensor input, long[] outputSplits, CallOptions options) {
    OpType op = OpType.ALL_GATHER_INTO;
    long[] rows = splits.orNone(op, "outputSplits", outputSplits, output, "output");
    return spec(
        checks.forAllGatherInto(output, input, rows),
        options,
        new Call(op).output(output).input(input).splits(rows, Splits.NONE));
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
    checks.rank(op, "root", root);
    int count = root == group.rank() ? group.size() : 0;
    BoundBackend backend = forParts(op, input, outputs, count, true);
    return spec(backend, options, new Call(op).outputs(outputs).input(input).root(root));
  }

  OperationSpec scatter(Tensor output, List<Tensor> inputs, int root, CallOptions options) {
    OpType op = OpType.SCATTER;
    checks.rank(op, "root", root);
    int count = root == group.rank() ? group.size() : 0;
    BoundBackend backend = forParts(op, output, inputs, count, false);
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
    long[] outputRows = splits.of(op, "outputSplits", outputSplits, output, "output");
    long[] inputRows = splits.of(op, "inputSplits", inputSplits, input, "input");
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

  private BoundBackend first(OpType op, String argument, List<Tensor> tensors) {
    checks.given(op, argument, tensors);
    if (tensors.isEmpty()) {
      throw checks.bad(op, "%s must not be empty", argument);
    }
    return checks.backendFor(op, argument + "[0]", tensors.get(0));
  }

  /** Checks one tensor and, on the other side, a list of tensors, one per rank. */
  private BoundBackend forParts(
      OpType op, Tensor whole, List<Tensor> parts, int count, boolean partsAreOutputs) {
    String name = partsAreOutputs ? "input" : "output";
    String partNames = partsAreOutputs ? "outputs" : "inputs";
    BoundBackend backend = checks.backendFor(op, name, whole);
    checks.movable(op, name, whole, backend, !partsAreOutputs);
    checks.count(op, partNames, parts, count);
    boolean mayDiffer = op == OpType.ALL_GATHER || op == OpType.REDUCE_SCATTER;
    for (int r = 0; r < count; r++) {
      String part = partNames + "[" + r + "]";
      checks.movable(op, part, parts.get(r), backend, partsAreOutputs);
      if (mayDiffer && r != group.rank()) {
        checks.same(op, part, parts.get(r), whole);
        if (parts.get(r).numel() != whole.numel()) {
          checks.uneven(op, backend, part, parts.get(r), whole);
        }
      } else {
        checks.sameSize(op, part, parts.get(r), whole);
      }
    }
    overlaps.require(
        op,
        partsAreOutputs ? parts : List.of(whole),
        partsAreOutputs ? List.of(whole) : parts,
        InPlace.OWN_TENSOR);
    return backend;
  }

  /** Specifies an operation whose arguments have been checked, except for the options. */
  OperationSpec spec(BoundBackend backend, CallOptions options, Call call) {
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
    call.besideComputation(options.isBesideComputation());
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
