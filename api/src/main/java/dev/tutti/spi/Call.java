package dev.tutti.spi;

import dev.tutti.DType;
import dev.tutti.OpType;
import dev.tutti.ReduceOp;
import dev.tutti.SymmetricMemory;
import dev.tutti.Tensor;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.OptionalInt;
import org.jspecify.annotations.Nullable;

/**
 * The call of an operation: its type and arguments.
 *
 * <p>The issuer of the operation fills in the call, and may reuse it after the operation has ended.
 * Everyone else only reads it: a backend does so on the thread that calls {@link Backend#run},
 * until that method returns, or for a message, until the message ends. A single tensor is kept
 * without a list, so that a call with one tensor allocates nothing.
 */
public final class Call {
  private static final long[] NONE = {};

  private OpType type;
  private @Nullable Tensor input;
  private @Nullable Tensor output;
  private List<Tensor> inputs = List.of();
  private List<Tensor> outputs = List.of();
  private boolean inPlace;
  private @Nullable ReduceOp reduceOp;
  private @Nullable String algorithm;
  private boolean besideComputation;
  private int root = -1;
  private int tag;
  private long[] inputSplits = NONE;
  private long[] outputSplits = NONE;
  private long byteSize;
  private boolean waitAllRanks;
  private @Nullable SymmetricMemory memory;

  /** Creates a call without arguments. */
  public Call(OpType type) {
    this.type = type;
  }

  /** Returns the operation. */
  public OpType type() {
    return type;
  }

  /** Returns the tensor that is read, or the first one if there are several. */
  public Tensor input() {
    Tensor one = input;
    return one != null ? one : inputs.get(0);
  }

  /** Returns the tensor that is written, or the first one if there are several. */
  public Tensor output() {
    Tensor one = inPlace ? input : output;
    return one != null ? one : outputs.get(0);
  }

  /** Returns the tensors that are read; those of an in-place operation are written, too. */
  public List<Tensor> inputs() {
    Tensor one = input;
    return one != null ? List.of(one) : inputs;
  }

  /** Returns the tensors that are written. */
  public List<Tensor> outputs() {
    Tensor one = inPlace ? input : output;
    return one != null ? List.of(one) : outputs;
  }

  /** Returns the number of tensors that are read. */
  public int inputCount() {
    return input != null ? 1 : inputs.size();
  }

  /** Returns the number of tensors that are written. */
  public int outputCount() {
    Tensor one = inPlace ? input : output;
    return one != null ? 1 : outputs.size();
  }

  /** Returns whether the operation writes the tensors that it reads. */
  public boolean isInPlace() {
    return inPlace;
  }

  /**
   * Returns an input, or an output if there is no input, or null if there is neither; all tensors
   * are of one type and on one device.
   */
  public @Nullable Tensor first() {
    Tensor one = input;
    if (one != null) {
      return one;
    }
    List<Tensor> several = inputs.isEmpty() ? outputs : inputs;
    return several.isEmpty() ? output : several.get(0);
  }

  /** Returns the element type of the tensors, or null if there are none. */
  public @Nullable DType dtype() {
    Tensor first = first();
    return first == null ? null : first.dtype();
  }

  /** Returns the number of elements that are read, or that are written if none are read. */
  public long numel() {
    Tensor read = input;
    Tensor one = read != null ? read : output;
    if (one != null && inputs.isEmpty()) {
      return one.numel();
    }
    List<Tensor> several = inputs.isEmpty() ? outputs : inputs;
    long numel = 0;
    for (int i = 0; i < several.size(); i++) {
      numel += several.get(i).numel();
    }
    return numel;
  }

  /**
   * Returns the operator that reduces the tensors.
   *
   * @throws NullPointerException if the operation does not reduce
   */
  public ReduceOp reduceOp() {
    return Objects.requireNonNull(reduceOp, "an operation that does not reduce");
  }

  /** Returns the kind of reduction, or null if the operation does not reduce. */
  public ReduceOp.@Nullable Kind reduceKind() {
    ReduceOp op = reduceOp;
    return op == null ? null : op.kind();
  }

  /** Returns the algorithm that the caller of an all-reduce requested, or null for any. */
  public @Nullable String algorithm() {
    return algorithm;
  }

  /** Returns whether the device computes beside an all-reduce, on all ranks alike. */
  public boolean isBesideComputation() {
    return besideComputation;
  }

  /**
   * Returns the root of a collective or the peer of a message.
   *
   * @throws IllegalStateException if the operation has neither
   */
  public int root() {
    if (root < 0) {
      throw new IllegalStateException(type.label() + " has no root and no peer");
    }
    return root;
  }

  /**
   * Returns the root of a collective or the peer of a message, or another number if there is
   * neither.
   *
   * @param none the number to return for an operation without root and peer
   */
  public int rootOr(int none) {
    return root < 0 ? none : root;
  }

  /** Returns the root of a collective or the peer of a message; empty if there is neither. */
  public OptionalInt optionalRoot() {
    return root < 0 ? OptionalInt.empty() : OptionalInt.of(root);
  }

  /** Returns the tag of a message, or 0. */
  public int tag() {
    return tag;
  }

  /**
   * Returns the number of input rows for each rank of an {@code allToAllSingle} or, if given, of a
   * {@code reduceScatterInto}; the array must not be changed.
   */
  public long[] inputSplits() {
    return inputSplits;
  }

  /**
   * Returns the number of rows from each rank in the output of an {@code allToAllSingle} or, if
   * given, of an {@code allGatherInto}; the array must not be changed.
   */
  public long[] outputSplits() {
    return outputSplits;
  }

  /** Returns the number of bytes of symmetric memory to allocate. */
  public long byteSize() {
    return byteSize;
  }

  /** Returns whether rank 0 of a monitored barrier collects all missing ranks. */
  public boolean waitAllRanks() {
    return waitAllRanks;
  }

  /** Returns the result of {@link Backend#allocateSymmetric}, or null before it returned. */
  public @Nullable SymmetricMemory memory() {
    return memory;
  }

  /**
   * Clears all arguments.
   *
   * @param newType the operation to call next
   * @param newReduceOp the operator that reduces the tensors, or null for an operation that does
   *     not reduce
   */
  public Call reset(OpType newType, @Nullable ReduceOp newReduceOp) {
    type = newType;
    reduceOp(newReduceOp);
    root = -1;
    tag = 0;
    byteSize = 0;
    waitAllRanks = false;
    // A reference costs more to write than to compare, where it need not be written.
    if (algorithm != null) {
      algorithm = null;
    }
    besideComputation = false;
    if (inputSplits.length + outputSplits.length > 0) {
      splits(NONE, NONE);
    }
    if (memory != null) {
      memory = null;
    }
    forgetTensors();
    return this;
  }

  /** Clears the tensors, so that their memory can be freed before the call is used again. */
  public void forgetTensors() {
    inPlace = false;
    if (input != null) {
      input = null;
    }
    if (output != null) {
      output = null;
    }
    if (!inputs.isEmpty()) {
      inputs = List.of();
    }
    if (!outputs.isEmpty()) {
      outputs = List.of();
    }
  }

  /** Sets the tensor that is read and written. */
  public Call inPlace(Tensor tensor) {
    input = tensor;
    inPlace = true;
    return this;
  }

  /** Sets the tensors that are read and written. */
  public Call inPlace(List<Tensor> tensors) {
    inputs = List.copyOf(tensors);
    outputs = inputs;
    inPlace = true;
    return this;
  }

  /** Sets the tensor that is read. */
  public Call input(Tensor tensor) {
    input = tensor;
    return this;
  }

  /** Sets the tensors that are read. */
  public Call inputs(List<Tensor> tensors) {
    inputs = List.copyOf(tensors);
    return this;
  }

  /** Sets the tensor that is written. */
  public Call output(Tensor tensor) {
    output = tensor;
    return this;
  }

  /** Sets the tensors that are written. */
  public Call outputs(List<Tensor> tensors) {
    outputs = List.copyOf(tensors);
    return this;
  }

  /** Sets the operator that reduces the tensors. */
  public Call reduceOp(@Nullable ReduceOp newReduceOp) {
    reduceOp = newReduceOp;
    return this;
  }

  /** Sets the algorithm of an all-reduce. */
  public Call algorithm(@Nullable String newAlgorithm) {
    algorithm = newAlgorithm;
    return this;
  }

  /** Sets whether the device computes beside an all-reduce. */
  public Call besideComputation(boolean isBeside) {
    besideComputation = isBeside;
    return this;
  }

  /** Sets the root or peer. */
  public Call root(int newRoot) {
    root = newRoot;
    return this;
  }

  /** Sets the tag of a message. */
  public Call tag(int newTag) {
    tag = newTag;
    return this;
  }

  /**
   * Sets the row counts.
   *
   * @param newOutputSplits the rows from each rank, or empty; the array is kept, not copied
   * @param newInputSplits the rows to each rank, or empty; the array is kept, not copied
   */
  public Call splits(long[] newOutputSplits, long[] newInputSplits) {
    outputSplits = newOutputSplits;
    inputSplits = newInputSplits;
    return this;
  }

  /** Sets the number of bytes of symmetric memory to allocate. */
  public Call byteSize(long newByteSize) {
    byteSize = newByteSize;
    return this;
  }

  /** Sets whether rank 0 of a monitored barrier collects all missing ranks. */
  public Call waitAllRanks(boolean newWaitAllRanks) {
    waitAllRanks = newWaitAllRanks;
    return this;
  }

  /** Sets the result of {@link Backend#allocateSymmetric}. */
  public Call memory(SymmetricMemory newMemory) {
    memory = newMemory;
    return this;
  }

  /**
   * Returns a copy with other tensors.
   *
   * @param newInputs the tensors that are read, and also written if the call is in place
   * @param newOutputs the tensors that are written
   */
  public Call withTensors(List<Tensor> newInputs, List<Tensor> newOutputs) {
    Call copy = new Call(type);
    copy.inPlace = inPlace;
    copy.reduceOp = reduceOp;
    copy.algorithm = algorithm;
    copy.besideComputation = besideComputation;
    copy.root = root;
    copy.tag = tag;
    copy.inputSplits = inputSplits;
    copy.outputSplits = outputSplits;
    copy.byteSize = byteSize;
    copy.waitAllRanks = waitAllRanks;
    copy.inputs = List.copyOf(newInputs);
    copy.outputs = inPlace ? copy.inputs : List.copyOf(newOutputs);
    return copy;
  }

  /** Describes the call, as in {@code reduce SUM float32[4] root 1}. */
  @Override
  public String toString() {
    return type.label() + arguments();
  }

  /** Describes the call with its number, as in {@code reduce #3 SUM float32[4] root 1}. */
  public String describe(long sequenceNumber) {
    return type.label() + " #" + sequenceNumber + arguments();
  }

  private String arguments() {
    StringBuilder text = new StringBuilder(64);
    if (reduceOp != null) {
      text.append(' ').append(reduceOp);
    }
    if (first() != null) {
      text.append(' ').append(describe(inputs()));
      if (!inPlace) {
        text.append(" -> ").append(describe(outputs()));
      }
    }
    if (root >= 0) {
      text.append(type.isPointToPoint() ? " peer " : " root ").append(root);
    }
    if (type.isPointToPoint()) {
      text.append(" tag ").append(tag);
    }
    if (byteSize > 0) {
      text.append(" of ").append(byteSize).append(" bytes");
    }
    return text.toString();
  }

  private static String describe(List<Tensor> tensors) {
    List<String> texts = new ArrayList<>(tensors.size());
    for (Tensor tensor : tensors) {
      texts.add(tensor.describe().replace(" on cpu", ""));
    }
    return texts.size() == 1 ? texts.get(0) : texts.toString();
  }
}
