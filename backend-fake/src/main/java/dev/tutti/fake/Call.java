package dev.tutti.fake;

import dev.tutti.DType;
import dev.tutti.OpType;
import dev.tutti.ReduceOp;
import dev.tutti.Tensor;
import dev.tutti.spi.Operation;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/**
 * Holds the arguments of one call of a backend.
 *
 * @param type the operation
 * @param sequence its number
 * @param reduceOp the operator, if it reduces
 * @param root the root or peer, or -1
 * @param tag the tag of a message, or -1
 * @param inputs tensors read; an operation in place has the same tensors as inputs and outputs
 * @param outputs tensors written
 * @param byteSize bytes of symmetric memory, or -1
 * @param block the symmetric memory that rank 0 brings
 */
record Call(
    OpType type,
    long sequence,
    @Nullable ReduceOp reduceOp,
    int root,
    int tag,
    List<Tensor> inputs,
    List<Tensor> outputs,
    long byteSize,
    @Nullable SharedBlock block) {

  static Call of(Operation op, List<Tensor> inputs, List<Tensor> outputs) {
    return new Call(op.type(), op.sequenceNumber(), null, -1, -1, inputs, outputs, -1, null);
  }

  static Call inPlace(Operation op, Tensor tensor) {
    List<Tensor> one = List.of(tensor);
    return of(op, one, one);
  }

  static Call symmetric(Operation op, long byteSize, @Nullable SharedBlock block) {
    return new Call(
        op.type(), op.sequenceNumber(), null, -1, -1, List.of(), List.of(), byteSize, block);
  }

  Call withOp(ReduceOp newOp) {
    return new Call(type, sequence, newOp, root, tag, inputs, outputs, byteSize, block);
  }

  Call withRoot(int newRoot) {
    return new Call(type, sequence, reduceOp, newRoot, tag, inputs, outputs, byteSize, block);
  }

  Call withTag(int newTag) {
    return new Call(type, sequence, reduceOp, root, newTag, inputs, outputs, byteSize, block);
  }

  Call withTensors(List<Tensor> newInputs, List<Tensor> newOutputs) {
    return new Call(type, sequence, reduceOp, root, tag, newInputs, newOutputs, byteSize, block);
  }

  boolean isInPlace() {
    return inputs.equals(outputs);
  }

  /** Copies inputs that overlap an output: peers may read them after this rank wrote the output. */
  Call withoutOverlap() {
    if (isInPlace()) {
      return this;
    }
    List<Tensor> apart = new ArrayList<>(inputs.size());
    for (Tensor input : inputs) {
      apart.add(overlapsAny(input, outputs) ? input.copy() : input);
    }
    return withTensors(apart, outputs);
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

  /** Returns the element type of the tensors, which the group has seen to be one. */
  @Nullable DType dtype() {
    if (!inputs.isEmpty()) {
      return inputs.get(0).dtype();
    }
    return outputs.isEmpty() ? null : outputs.get(0).dtype();
  }

  /** Returns the bytes that this rank contributes. */
  long inputBytes() {
    long bytes = 0;
    for (Tensor input : inputs) {
      bytes += input.byteSize();
    }
    return bytes;
  }

  /** Tells whether the memory of a tensor was freed. */
  boolean isFreed() {
    return Stream.concat(inputs.stream(), outputs.stream())
        .flatMap(
            tensor ->
                tensor.isSparse()
                    ? Stream.of(tensor.indices(), tensor.values())
                    : Stream.of(tensor))
        .anyMatch(tensor -> !tensor.segment().scope().isAlive());
  }

  /** Tells whether this call can be the same operation as another rank's. */
  boolean matches(Call other) {
    if (type != other.type
        || root != other.root
        || byteSize != other.byteSize
        || dtype() != other.dtype()
        || (reduceOp == null ? null : reduceOp.kind())
            != (other.reduceOp == null ? null : other.reduceOp.kind())) {
      return false;
    }
    if (!hasEqualParts()) {
      return true;
    }
    return type == OpType.ALL_REDUCE_SPARSE
        ? inputs.get(0).sameShape(other.inputs.get(0))
        : sameSizes(inputs, other.inputs);
  }

  /** Tells whether all ranks give tensors of the same sizes. */
  boolean hasEqualParts() {
    return switch (type) {
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

  /** Describes the call as one would write it. */
  String describe() {
    StringBuilder text = new StringBuilder(64).append(type.label()).append(" #").append(sequence);
    if (reduceOp != null) {
      text.append(' ').append(reduceOp);
    }
    if (!inputs.isEmpty() || !outputs.isEmpty()) {
      text.append(' ').append(tensors(inputs));
      if (!isInPlace()) {
        text.append(" -> ").append(tensors(outputs));
      }
    }
    if (root >= 0) {
      text.append(type.isPointToPoint() ? " peer " : " root ").append(root);
    }
    if (tag >= 0) {
      text.append(" tag ").append(tag);
    }
    if (byteSize >= 0) {
      text.append(" of ").append(byteSize).append(" bytes");
    }
    return text.toString();
  }

  private static String tensors(List<Tensor> tensors) {
    List<String> texts = new ArrayList<>(tensors.size());
    for (Tensor tensor : tensors) {
      texts.add(tensor.describe().replace(" on cpu", ""));
    }
    return texts.size() == 1 ? texts.get(0) : texts.toString();
  }
}
