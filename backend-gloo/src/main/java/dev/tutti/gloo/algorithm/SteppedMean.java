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
  /** A reduction of tensors of the host by an operator that is not AVG. */
  @FunctionalInterface
  public interface InPlace {
    /**
     * Reduces in place.
     *
     * @param tensor contiguous
     * @param op the operator
     * @throws Exception if a wait fails
     */
    void run(Tensor tensor, ReduceOp op) throws Exception;
  }

  /** A reduce-scatter of tensors of the host by an operator that is not AVG. */
  @FunctionalInterface
  public interface Scattering {
    /**
     * Reduces each part onto its rank.
     *
     * @param output receives this rank's part of the result, contiguous
     * @param inputs the parts, in rank order, contiguous
     * @param op the operator
     * @throws Exception if a wait fails
     */
    void run(Tensor output, List<Tensor> inputs, ReduceOp op) throws Exception;
  }

  private final int size;
  private final double divisor;
  private final ReduceOp scaledSum;
  private final Scratch wide = new Scratch();

  /**
   * Creates an instance for any number of operations, one at a time.
   *
   * @param size the number of ranks
   */
  public SteppedMean(int size) {
    this.size = size;
    double factor = HostReducer.meanFactor(size);
    divisor = size * factor;
    scaledSum = size == 1 ? ReduceOp.SUM : ReduceOp.premulSum(factor);
  }

  /**
   * Computes the mean of a tensor.
   *
   * @param tensor the tensor, contiguous; on a rank that does not get the mean it is left with any
   *     content
   * @param gets whether this rank gets the mean
   * @param sum computes the sum
   * @throws Exception if the sum fails
   */
  public void run(Tensor tensor, boolean gets, InPlace sum) throws Exception {
    if (!tensor.dtype().isInteger()) {
      sum.run(tensor, scaledSum);
      if (gets) {
        divide(tensor);
      }
      return;
    }
    Tensor sums = wide(tensor.dtype(), tensor.numel());
    IntegerMeans.widen(tensor, sums.segment(), 0);
    sum.run(sums, ReduceOp.SUM);
    if (gets) {
      IntegerMeans.narrow(sums.segment(), tensor, size);
    }
  }

  /**
   * Computes the mean of one part for each rank.
   *
   * @param output receives the mean of this rank's part, contiguous
   * @param inputs the parts, in rank order, contiguous
   * @param sum computes the sum
   * @throws Exception if the sum fails
   */
  public void scatter(Tensor output, List<Tensor> inputs, Scattering sum) throws Exception {
    DType dtype = output.dtype();
    if (!dtype.isInteger()) {
      sum.run(output, inputs, scaledSum);
      divide(output);
      return;
    }
    long count = output.numel() * IntegerMeans.wideCount(dtype);
    Tensor all = wide(dtype, output.numel() * (size + 1));
    List<Tensor> parts = new ArrayList<>();
    for (int rank = 0; rank < size; rank++) {
      Tensor part = all.narrow(0, rank * count, count);
      IntegerMeans.widen(inputs.get(rank), part.segment(), 0);
      parts.add(part);
    }
    Tensor sums = all.narrow(0, size * count, count);
    sum.run(sums, parts, ReduceOp.SUM);
    IntegerMeans.narrow(sums.segment(), output, size);
  }

  private Tensor wide(DType dtype, long numel) {
    long count = numel * IntegerMeans.wideCount(dtype);
    MemorySegment memory = wide.atLeast(Math.max(1, count * Long.BYTES));
    return Tensor.wrap(memory, IntegerMeans.wideType(dtype), count);
  }

  private void divide(Tensor tensor) {
    if (divisor != 1) {
      HostReducer.divide(tensor.dtype(), tensor.segment(), 0, tensor.numel(), divisor);
    }
  }
}
