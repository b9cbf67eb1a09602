package dev.tutti.fake;

import dev.tutti.OpType;
import dev.tutti.ReduceOp;
import dev.tutti.Tensor;
import dev.tutti.spi.Call;
import dev.tutti.spi.Operation;
import dev.tutti.spi.Staging;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/**
 * What one rank contributes to a round of all ranks.
 *
 * @param call a copy of the rank's call; the parts of an {@code allToAllSingle} are tensors of
 *     their own
 * @param sequence the number of the call
 * @param block the symmetric memory that rank 0 contributes
 */
record Contribution(Call call, long sequence, @Nullable SharedBlock block) {

  static Contribution of(Operation op, @Nullable SharedBlock block) {
    Call call = listed(op.call());
    boolean isSplit = call.type() == OpType.ALL_TO_ALL_SINGLE;
    List<Tensor> inputs =
        isSplit ? Staging.splitRows(call.input(), call.inputSplits()) : call.inputs();
    List<Tensor> outputs =
        isSplit ? Staging.splitRows(call.output(), call.outputSplits()) : call.outputs();
    return new Contribution(
        call.withTensors(call.isInPlace() ? inputs : apart(inputs, outputs), outputs),
        op.sequenceNumber(),
        block);
  }

  /** Returns a call whose rows for each rank are tensors of their own. */
  private static Call listed(Call call) {
    if (call.type() == OpType.ALL_GATHER_INTO && call.outputSplits().length > 0) {
      return new Call(OpType.ALL_GATHER)
          .input(call.input())
          .outputs(Staging.splitRows(call.output(), call.outputSplits()));
    }
    if (call.type() == OpType.REDUCE_SCATTER_INTO && call.inputSplits().length > 0) {
      return new Call(OpType.REDUCE_SCATTER)
          .output(call.output())
          .inputs(Staging.splitRows(call.input(), call.inputSplits()))
          .reduceOp(call.reduceOp());
    }
    return call;
  }

  OpType type() {
    return call.type();
  }

  int root() {
    return call.root();
  }

  ReduceOp reduceOp() {
    return call.reduceOp();
  }

  List<Tensor> inputs() {
    return call.inputs();
  }

  List<Tensor> outputs() {
    return call.outputs();
  }

  /**
   * Copies inputs that overlap an output: peers may read them after this rank has written the
   * output.
   */
  private static List<Tensor> apart(List<Tensor> inputs, List<Tensor> outputs) {
    List<Tensor> apart = new ArrayList<>(inputs.size());
    for (Tensor input : inputs) {
      apart.add(!input.isSparse() && overlapsAny(input, outputs) ? input.copy() : input);
    }
    return apart;
  }

  private static boolean overlapsAny(Tensor input, List<Tensor> outputs) {
    long start = input.segment().address();
    long end = start + input.byteSize();
    for (Tensor output : outputs) {
      long written = output.segment().address();
      if (written < end && start < written + output.byteSize()) {
        return true;
      }
    }
    return false;
  }

  /** Returns the bytes that this rank contributes. */
  long inputBytes() {
    long bytes = 0;
    for (Tensor input : inputs()) {
      bytes += input.byteSize();
    }
    return bytes;
  }

  /** Returns whether the memory of a tensor has been freed. */
  boolean isFreed() {
    return Stream.concat(inputs().stream(), outputs().stream())
        .flatMap(
            tensor ->
                tensor.isSparse()
                    ? Stream.of(tensor.indices(), tensor.values())
                    : Stream.of(tensor))
        .anyMatch(tensor -> !tensor.segment().scope().isAlive());
  }

  /** Returns whether this call can be the same operation as another rank's. */
  boolean matches(Contribution other) {
    if (type() != other.type()
        || call.rootOr(-1) != other.call.rootOr(-1)
        || call.byteSize() != other.call.byteSize()
        || call.dtype() != other.call.dtype()
        || call.reduceKind() != other.call.reduceKind()) {
      return false;
    }
    if (!hasEqualParts()) {
      return true;
    }
    return type() == OpType.ALL_REDUCE_SPARSE
        ? call.input().sameShape(other.call.input())
        : sameSizes(inputs(), other.inputs());
  }

  /** Returns whether all ranks pass tensors of the same sizes. */
  boolean hasEqualParts() {
    return switch (type()) {
      case ALL_GATHER, GATHER, SCATTER, ALL_TO_ALL, ALL_TO_ALL_SINGLE -> false;
      default -> true;
    };
  }

  private static boolean sameSizes(List<Tensor> some, List<Tensor> others) {
    if (some.size() != others.size()) {
      return false;
    }
    for (int i = 0; i < some.size(); i++) {
      if (some.get(i).numel() != others.get(i).numel()) {
        return false;
      }
    }
    return true;
  }

  /** Describes the call and its number in readable form. */
  String describe() {
    return call.describe(sequence);
  }
}
