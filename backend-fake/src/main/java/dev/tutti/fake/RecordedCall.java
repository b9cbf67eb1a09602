package dev.tutti.fake;

import dev.tutti.DType;
import dev.tutti.OpType;
import dev.tutti.ReduceOp;
import java.util.List;
import org.jspecify.annotations.Nullable;

/** One call that reached a backend. Made by {@link CallRecorder} alone. */
public interface RecordedCall {
  /** Returns the name of the group. */
  String group();

  /** Returns the calling rank in that group. */
  int rank();

  /** Returns the operation. */
  OpType opType();

  /** Returns its number in the group's sequence of collectives or of messages, from 1. */
  long sequenceNumber();

  /** Returns the element type; null without tensors. */
  @Nullable DType dtype();

  /** Returns the shapes of the tensors read. */
  List<List<Long>> inputShapes();

  /** Returns the shapes of the tensors written; the same again for an operation in place. */
  List<List<Long>> outputShapes();

  /** Returns the root or peer, or -1. */
  int root();

  /** Returns the tag of a message, or -1. */
  int tag();

  /** Returns the operator; null for what does not reduce. */
  @Nullable ReduceOp reduceOp();
}
