package dev.tutti.gloo.algorithm;

import dev.tutti.DType;
import dev.tutti.ReduceOp;
import dev.tutti.Tensor;
import dev.tutti.cpu.HostReducer;
import dev.tutti.gloo.transport.Combiner;
import java.lang.foreign.MemorySegment;

/**
 * Combines the elements a rank holds with those it received, {@code held op received}, rounding
 * each step to the element type, as Gloo does.
 */
public final class Reduction implements Combiner {
  private ReduceOp.Kind kind = ReduceOp.Kind.SUM;
  private DType dtype = DType.FLOAT32;
  private int elementBytes = 4;

  Reduction() {}

  /** Prepares for one operation; elements of complex types are reduced as pairs of reals. */
  void set(ReduceOp op, Tensor tensor) {
    kind = op.kind();
    dtype = tensor.dtype().toReal();
    elementBytes = dtype.byteSize();
  }

  @Override
  public int unitBytes() {
    return elementBytes;
  }

  @Override
  public void combine(
      MemorySegment held, long heldOffset, MemorySegment received, long offset, long bytes) {
    HostReducer.reduce(kind, dtype, held, heldOffset, received, offset, bytes / elementBytes);
  }

  /** Multiplies elements by a factor. */
  void scale(MemorySegment memory, long offset, long bytes, double factor) {
    HostReducer.scale(dtype, memory, offset, bytes / elementBytes, factor);
  }

  /**
   * Scales this rank's elements before the first step, if the operator requires it.
   *
   * @param tensor the tensor, read and written
   */
  public static void before(ReduceOp op, Tensor tensor) {
    if (op.kind() == ReduceOp.Kind.PREMUL_SUM) {
      HostReducer.scale(tensor.dtype(), tensor.segment(), 0, tensor.numel(), op.factor());
    }
  }

  /**
   * Returns the operator for one of the steps of a reduction after {@link #before}.
   *
   * @param op the operator of the whole reduction
   */
  public static ReduceOp between(ReduceOp op) {
    return op.kind() == ReduceOp.Kind.PREMUL_SUM ? ReduceOp.SUM : op;
  }

  /**
   * Divides the elements after the last step, if the operator requires it, as PyTorch does; between
   * Tutti ranks AVG is computed by {@link SteppedMean}.
   *
   * @param tensor the tensor, read and written
   */
  public static void after(ReduceOp op, Tensor tensor, int size) {
    if (op.kind() == ReduceOp.Kind.AVG) {
      HostReducer.divide(tensor.dtype(), tensor.segment(), 0, tensor.numel(), size);
    }
  }
}
