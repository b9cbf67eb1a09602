package dev.tutti.fake;

import dev.tutti.DType;
import dev.tutti.OpType;
import dev.tutti.ReduceOp;
import java.util.List;
import java.util.OptionalInt;
import org.jspecify.annotations.Nullable;

/** One call that reached a backend. Instances are created only by {@link CallRecorder}. */
public interface RecordedCall {
  /** Returns the name of the group. */
  String group();

  /** Returns the calling rank in that group. */
  int rank();

  /** Returns the operation. */
  OpType opType();

  /**
   * Returns the number of the call in the group's sequence of collectives or of messages, starting
   * at 1.
   */
  long sequenceNumber();

  /** Returns the element type, or null if there are no tensors. */
  @Nullable DType dtype();

  /** Returns the shapes of the tensors that are read. */
  List<List<Long>> inputShapes();

  /**
   * Returns the shapes of the tensors that are written; these equal the input shapes for an
   * in-place operation.
   */
  List<List<Long>> outputShapes();

  /** Returns the root of a collective or the peer of a message, or empty if there is neither. */
  OptionalInt root();

  /** Returns the tag of a message, or empty for a collective. */
  OptionalInt tag();

  /** Returns the operator, or null if the operation does not reduce. */
  @Nullable ReduceOp reduceOp();
}
