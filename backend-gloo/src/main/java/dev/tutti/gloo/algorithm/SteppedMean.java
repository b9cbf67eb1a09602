package dev.tutti.gloo.algorithm;

import dev.tutti.DType;
import dev.tutti.ReduceOp;
import dev.tutti.Tensor;
import dev.tutti.cpu.HostReducer;
import dev.tutti.cpu.IntegerMeans;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;

/**
 * Computes AVG, between Tutti ranks, by a sum in steps that does not overflow. Real elements are
 * multiplied by a power of two before, and the sum is divided by the rest afterwards; integers are
 * summed as wider elements. Used by one thread at a time.
 */
public final class SteppedMean {
  private final int size;
  private final double divisor;
  private final ReduceOp scaledSum;
  private final Scratch wide = new Scratch();
  private final Scratch wideSums = new Scratch();

  /** Creates an instance for any number of operations, one at a time. */
  public SteppedMean(int size) {
    this.size = size;
    double factor = HostReducer.meanFactor(size);
    divisor = size * factor;
    scaledSum = size == 1 ? ReduceOp.SUM : ReduceOp.premulSum(factor);
  }

  /**
   * Returns the tensor that {@link #sum} reduces in place of another: the same one for real
   * elements, wider ones for integers, which are valid until the next call.
   *
   * @param tensor the tensor, contiguous
   */
  public Tensor summands(Tensor tensor) {
    if (!tensor.dtype().isInteger()) {
      return tensor;
    }
    Tensor sums = wide(wide, tensor.dtype(), tensor.numel());
    IntegerMeans.widen(tensor, sums.segment(), 0);
    return sums;
  }

  /**
   * Returns the tensors that {@link #sum} reduces in place of one for each rank, as {@link
   * #summands(Tensor)}.
   *
   * @param tensors the parts, in rank order, contiguous
   */
  public List<Tensor> summands(List<Tensor> tensors) {
    DType dtype = tensors.get(0).dtype();
    if (!dtype.isInteger()) {
      return tensors;
    }
    Tensor all = wide(wide, dtype, tensors.stream().mapToLong(Tensor::numel).sum());
    List<Tensor> parts = new ArrayList<>();
    long start = 0;
    for (Tensor tensor : tensors) {
      long count = tensor.numel() * IntegerMeans.wideCount(dtype);
      Tensor part = all.narrow(0, start, count);
      IntegerMeans.widen(tensor, part.segment(), 0);
      parts.add(part);
      start += count;
    }
    return parts;
  }

  /**
   * Returns the tensor that receives the sum of one part: the output itself for real elements,
   * wider ones for integers, which are valid until the next call.
   *
   * @param output the output, contiguous
   */
  public Tensor sums(Tensor output) {
    DType dtype = output.dtype();
    return dtype.isInteger() ? wide(wideSums, dtype, output.numel()) : output;
  }

  /** Returns the operator that reduces {@link #summands(Tensor)} of elements of a type. */
  public ReduceOp sum(DType dtype) {
    return dtype.isInteger() ? ReduceOp.SUM : scaledSum;
  }

  /**
   * Computes means from sums.
   *
   * @param sums the reduced summands
   * @param output receives the means, contiguous; the same as {@code sums} for real elements
   */
  public void finish(Tensor sums, Tensor output) {
    if (output.dtype().isInteger()) {
      IntegerMeans.narrow(sums.segment(), output, size);
    } else if (divisor != 1) {
      HostReducer.divide(output.dtype(), output.segment(), 0, output.numel(), divisor);
    }
  }

  private static Tensor wide(Scratch scratch, DType dtype, long numel) {
    long count = numel * IntegerMeans.wideCount(dtype);
    MemorySegment memory = scratch.atLeast(Math.max(1, count * Long.BYTES));
    return Tensor.wrap(memory, IntegerMeans.wideType(dtype), count);
  }
}
