package dev.tutti.fake;

import dev.tutti.DType;
import dev.tutti.OpType;
import dev.tutti.ReduceOp;
import dev.tutti.Tensor;
import dev.tutti.spi.Call;
import dev.tutti.spi.Operation;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Is one call that reached a backend.
 *
 * @param group name of the group
 * @param rank the calling rank in that group
 * @param opType the operation
 * @param sequenceNumber its number in the group's sequence of collectives or of messages, from 1
 * @param dtype the element type; null without tensors
 * @param inputShapes shapes of the tensors read
 * @param outputShapes shapes of the tensors written; the same again for an operation in place
 * @param root the root or peer, or -1
 * @param tag the tag of a message, or -1
 * @param reduceOp the operator; null for what does not reduce
 */
public record RecordedCall(
    String group,
    int rank,
    OpType opType,
    long sequenceNumber,
    @Nullable DType dtype,
    List<List<Long>> inputShapes,
    List<List<Long>> outputShapes,
    int root,
    int tag,
    @Nullable ReduceOp reduceOp) {

  /** Creates a record; copies the lists. */
  public RecordedCall {
    inputShapes = List.copyOf(inputShapes);
    outputShapes = List.copyOf(outputShapes);
  }

  static RecordedCall of(String group, int rank, Operation op) {
    Call call = op.call();
    return new RecordedCall(
        group,
        rank,
        call.type(),
        op.sequenceNumber(),
        call.dtype(),
        shapes(call.inputs()),
        shapes(call.outputs()),
        call.root(),
        call.type().isPointToPoint() ? call.tag() : -1,
        call.reduceKind() == null ? null : call.reduceOp());
  }

  private static List<List<Long>> shapes(List<Tensor> tensors) {
    List<List<Long>> shapes = new ArrayList<>(tensors.size());
    for (Tensor tensor : tensors) {
      List<Long> shape = new ArrayList<>(tensor.dimensions());
      for (long size : tensor.shape()) {
        shape.add(size);
      }
      shapes.add(List.copyOf(shape));
    }
    return shapes;
  }
}
