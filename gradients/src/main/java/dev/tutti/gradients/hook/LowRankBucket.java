package dev.tutti.gradients.hook;

import dev.tutti.DType;
import dev.tutti.ProcessGroup;
import dev.tutti.ReduceOp;
import dev.tutti.Tensor;
import dev.tutti.gradients.GradientBucket;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * The low-rank approximation of the gradients of one bucket, and the state that the next step
 * needs.
 */
final class LowRankBucket {
  /*
   * A step adds to each matrix, in place, what the last approximation left out, and multiplies the
   * matrix by Q. It sums P over the ranks, makes its columns orthonormal, multiplies the
   * transposed matrix by P, and takes the mean of Q over the ranks. The matrix becomes P Q', the
   * same on all ranks, since ranks compute equal results from equal bits. Gradients that are not
   * approximated are packed one after another into a tensor of their own.
   */
  private final GradientBucket bucket;
  private final LowRankMatrix[] matrices;
  private final Tensor[] plain;
  private final Tensor plains;
  private final Tensor ps;
  private final Tensor qs;

  /**
   * Creates the state of a bucket.
   *
   * @param state the memory of all approximations, or null if that of a bucket ends with it
   */
  LowRankBucket(GradientBucket bucket, PowerSgdOptions options, @Nullable LowRankState state) {
    this.bucket = bucket;
    List<LowRankMatrix> approximated = new ArrayList<>();
    List<Tensor> others = new ArrayList<>();
    long plainSize = 0;
    long rowSize = 0;
    long columnSize = 0;
    for (int i = 0; i < bucket.gradients().size(); i++) {
      Tensor gradient = bucket.gradients().get(i);
      if (!options.compresses(gradient)) {
        others.add(gradient);
        plainSize += gradient.numel();
        continue;
      }
      int parameter = bucket.parameters().get(i);
      LowRankMemory memory =
          state == null ? new LowRankMemory(gradient, options) : state.memory(parameter, gradient);
      LowRankMatrix matrix =
          new LowRankMatrix(gradient, parameter, memory, rowSize, columnSize, options);
      approximated.add(matrix);
      rowSize += matrix.rowElements();
      columnSize += matrix.columnElements();
    }
    matrices = approximated.toArray(LowRankMatrix[]::new);
    plain = others.toArray(Tensor[]::new);
    plains = Tensor.allocate(DType.FLOAT32, plainSize);
    ps = Tensor.allocate(DType.FLOAT32, rowSize);
    qs = Tensor.allocate(DType.FLOAT32, columnSize);
  }

  /**
   * Reduces the bucket.
   *
   * @param step the number of the step since the start of training
   */
  void reduce(ProcessGroup group, long step) {
    reducePlain(group);
    if (matrices.length == 0) {
      return;
    }
    for (LowRankMatrix matrix : matrices) {
      matrix.beginQ(step);
      matrix.orthonormalQ(step);
      matrix.addError();
      matrix.multiplyQ();
      matrix.writeP(ps);
    }
    group.allReduce(ps, ReduceOp.SUM);
    for (LowRankMatrix matrix : matrices) {
      matrix.readP(ps);
      matrix.orthonormalP();
      matrix.multiplyP();
      matrix.writeQ(qs);
    }
    group.allReduce(qs, bucket.mean());
    for (LowRankMatrix matrix : matrices) {
      matrix.readQ(qs);
      matrix.approximate();
    }
  }

  private void reducePlain(ProcessGroup group) {
    if (plains.numel() == 0) {
      return;
    }
    copyPlain(true);
    group.allReduce(plains, bucket.mean());
    copyPlain(false);
  }

  private void copyPlain(boolean in) {
    MemorySegment all = plains.segment();
    long start = 0;
    for (Tensor gradient : plain) {
      MemorySegment one = gradient.segment();
      long bytes = gradient.byteSize();
      if (in) {
        MemorySegment.copy(one, 0, all, start, bytes);
      } else {
        MemorySegment.copy(all, start, one, 0, bytes);
      }
      start += bytes;
    }
  }
}
