package dev.tutti.fake;

import dev.tutti.DType;
import dev.tutti.ReduceOp;
import dev.tutti.Tensor;
import java.util.ArrayList;
import java.util.List;

/**
 * Creates inputs and computes the results that reductions of them must have, in float64 or as exact
 * integers.
 */
final class Samples {
  private Samples() {}

  static List<ReduceOp> opsOn(DType dtype, int rank) {
    List<ReduceOp> ops = new ArrayList<>();
    for (ReduceOp.Kind kind : ReduceOp.Kind.values()) {
      ReduceOp op =
          kind == ReduceOp.Kind.PREMUL_SUM
              ? ReduceOp.premulSum(factor(rank))
              : ReduceOp.ofName(kind.name());
      if (op.isDefinedOn(dtype)) {
        ops.add(op);
      }
    }
    return ops;
  }

  static double factor(int rank) {
    return 0.5 * (rank + 1);
  }

  /** Fills a tensor of one rank with small numbers that depend on rank and index. */
  static Tensor fill(Tensor tensor, int rank) {
    Tensor real = tensor.viewAsReal();
    if (tensor.dtype().isOpaque()) {
      Tensor bytes = tensor.view(DType.UINT8);
      for (long i = 0; i < tensor.numel(); i++) {
        bytes.setLong(i, (rank * 31L + i * 7) & 0xff);
      }
      return tensor;
    }
    for (long i = 0; i < real.numel(); i++) {
      real.setDouble(i, value(real.dtype(), rank, i));
    }
    return tensor;
  }

  static double value(DType dtype, int rank, long index) {
    long number = (rank * 7L + index * 3) % 5 + 1;
    if (dtype == DType.BOOL) {
      return (number + rank) % 2;
    }
    return dtype.isFloatingPoint() && index % 2 == 1 ? -number : number;
  }

  /** Computes the result of reducing {@link #fill}ed tensors, starting at element {@code start}. */
  static Tensor reduced(DType dtype, ReduceOp op, int size, long start, long count) {
    Tensor expected = Tensor.allocate(dtype, count);
    Tensor real = expected.viewAsReal();
    long parts = dtype.isComplex() ? 2 : 1;
    for (long i = 0; i < real.numel(); i++) {
      if (real.dtype().isFloatingPoint()) {
        real.setDouble(i, reduceDoubles(real.dtype(), op, size, start * parts + i));
      } else {
        real.setLong(i, reduceLongs(real.dtype(), op, size, start * parts + i));
      }
    }
    return expected;
  }

  private static double reduceDoubles(DType dtype, ReduceOp op, int size, long index) {
    boolean premul = op.kind() == ReduceOp.Kind.PREMUL_SUM;
    double result = value(dtype, 0, index) * (premul ? factor(0) : 1);
    for (int rank = 1; rank < size; rank++) {
      double value = value(dtype, rank, index) * (premul ? factor(rank) : 1);
      result =
          switch (op.kind()) {
            case SUM, AVG, PREMUL_SUM -> result + value;
            case PRODUCT -> result * value;
            case MIN -> Math.min(result, value);
            case MAX -> Math.max(result, value);
            default -> throw new AssertionError(op);
          };
    }
    return op.kind() == ReduceOp.Kind.AVG ? result / size : result;
  }

  private static long reduceLongs(DType dtype, ReduceOp op, int size, long index) {
    long result = (long) value(dtype, 0, index);
    for (int rank = 1; rank < size; rank++) {
      long value = (long) value(dtype, rank, index);
      result =
          switch (op.kind()) {
            case SUM, AVG -> dtype == DType.BOOL ? result | value : result + value;
            case PRODUCT -> result * value;
            case MIN -> Math.min(result, value);
            case MAX -> Math.max(result, value);
            case BAND -> result & value;
            case BOR -> result | value;
            case BXOR -> result ^ value;
            case PREMUL_SUM -> throw new AssertionError(op);
          };
    }
    if (op.kind() != ReduceOp.Kind.AVG) {
      return result;
    }
    // The sum wraps around like the type before it is divided.
    Tensor wrapped = Tensor.allocate(dtype, 1);
    wrapped.setLong(0, result);
    return wrapped.getLong(0) / size;
  }

  /** Returns whether two contiguous tensors have the same bytes. */
  static boolean sameBits(Tensor a, Tensor b) {
    return a.dtype() == b.dtype()
        && a.numel() == b.numel()
        && a.segment().asSlice(0, a.byteSize()).mismatch(b.segment().asSlice(0, b.byteSize()))
            == -1;
  }
}
