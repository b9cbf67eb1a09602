package dev.tutti.fake;

import dev.tutti.DType;
import dev.tutti.ReduceOp;
import dev.tutti.Tensor;
import dev.tutti.cpu.HostReducer;
import java.lang.foreign.MemorySegment;
import java.util.List;

/**
 * Reduces the same run of elements of all ranks in rank order, so that the result does not depend
 * on which thread computes it. Half-precision types are accumulated in float32 and rounded once.
 */
final class RankReducer {
  /* A block of any type fits into the first-level cache; the output may be one of the inputs. */
  private static final int BLOCK_BYTES = 8192;

  private final MemorySegment accumulator = MemorySegment.ofArray(new byte[BLOCK_BYTES]);
  private final MemorySegment operand = MemorySegment.ofArray(new byte[BLOCK_BYTES]);

  /**
   * Reduces a run.
   *
   * @param ops the operator of each rank; all have the same kind, but factors may differ
   * @param inputs one contiguous tensor from each rank
   * @param start the first element in every input
   * @param output contiguous; may be one of the inputs if the start positions are equal too
   * @param outputStart the first element in the output
   * @param count the number of elements
   */
  void reduce(
      List<ReduceOp> ops,
      List<Tensor> inputs,
      long start,
      Tensor output,
      long outputStart,
      long count) {
    DType dtype = output.dtype();
    int unit = dtype.byteSize();
    ReduceOp.Kind kind = ops.get(0).kind();
    if (kind == ReduceOp.Kind.PREMUL_SUM) {
      sumProducts(ops, inputs, start, output, outputStart, count);
    } else {
      MemorySegment[] segments = inputs.stream().map(Tensor::segment).toArray(MemorySegment[]::new);
      HostReducer.combineAll(
          kind, dtype, output.segment(), outputStart * unit, segments, start * unit, count);
    }
  }

  private void sumProducts(
      List<ReduceOp> ops,
      List<Tensor> inputs,
      long start,
      Tensor output,
      long outputStart,
      long count) {
    DType dtype = output.dtype();
    boolean half = Halves.isHalf(dtype);
    DType wide = half ? DType.FLOAT32 : dtype;
    int unit = dtype.byteSize();
    long block = BLOCK_BYTES / wide.byteSize();
    for (long done = 0; done < count; done += block) {
      long n = Math.min(block, count - done);
      for (int rank = 0; rank < inputs.size(); rank++) {
        MemorySegment source = inputs.get(rank).segment();
        long offset = (start + done) * unit;
        MemorySegment target = rank == 0 ? accumulator : operand;
        if (half) {
          Halves.widen(dtype, source, offset, target, n);
        } else {
          MemorySegment.copy(source, offset, target, 0, n * unit);
        }
        HostReducer.scale(wide, target, 0, n, ops.get(rank).factor());
        if (rank > 0) {
          HostReducer.reduce(ReduceOp.Kind.SUM, wide, accumulator, 0, operand, 0, n);
        }
      }
      long target = (outputStart + done) * unit;
      if (half) {
        Halves.narrow(dtype, accumulator, output.segment(), target, n);
      } else {
        MemorySegment.copy(accumulator, 0, output.segment(), target, n * unit);
      }
    }
  }
}
