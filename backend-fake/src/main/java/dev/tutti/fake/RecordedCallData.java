package dev.tutti.fake;

import dev.tutti.DType;
import dev.tutti.OpType;
import dev.tutti.ReduceOp;
import dev.tutti.Tensor;
import dev.tutti.spi.Call;
import dev.tutti.spi.Operation;
import java.util.ArrayList;
import java.util.List;
import java.util.OptionalInt;
import org.jspecify.annotations.Nullable;

/** The data that {@link CallRecorder} recorded about a call. */
record RecordedCallData(
    String group,
    int rank,
    OpType opType,
    long sequenceNumber,
    @Nullable DType dtype,
    List<List<Long>> inputShapes,
    List<List<Long>> outputShapes,
    OptionalInt root,
    OptionalInt tag,
    @Nullable ReduceOp reduceOp)
    implements RecordedCall {

  /** Creates a record, copying the lists. */
  RecordedCallData {
    inputShapes = List.copyOf(inputShapes);
    outputShapes = List.copyOf(outputShapes);
  }

  static RecordedCallData of(String group, int rank, Operation op) {
    Call call = op.call();
    return new RecordedCallData(
        group,
        rank,
        call.type(),
        op.sequenceNumber(),
        call.dtype(),
        shapes(call.inputs()),
        shapes(call.outputs()),
        call.optionalRoot(),
        call.type().isPointToPoint() ? OptionalInt.of(call.tag()) : OptionalInt.empty(),
        call.reduceKind() == null ? null : call.reduceOp());
  }

  private static List<List<Long>> shapes(List<Tensor> tensors) {
    List<List<Long>> shapes = new ArrayList<>(tensors.size());
    for (Tensor tensor : tensors) {
      List<Long> shape = new ArrayList<>(tensor.dim());
      for (long size : tensor.shape()) {
        shape.add(size);
      }
      shapes.add(List.copyOf(shape));
    }
    return shapes;
  }
}
