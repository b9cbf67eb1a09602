package dev.tutti.gradients.hook;

import dev.tutti.Tensor;

/** What the approximation of a matrix keeps from step to step. */
final class LowRankMemory {
  final int rows;
  final int columns;
  final int rank;

  /** Q of the last step, each of its columns contiguous. */
  final float[] q;

  /** What the last approximation left out; empty without error feedback. */
  final float[] error;

  /** Whether there was a step, so that Q is defined. */
  boolean begun;

  LowRankMemory(Tensor gradient, PowerSgdOptions options) {
    rows = Math.toIntExact(gradient.size(0));
    columns = Math.toIntExact(gradient.numel() / rows);
    rank = Math.min(options.rank(), Math.min(rows, columns));
    q = new float[Math.multiplyExact(rank, columns)];
    error = new float[options.errorFeedback() ? Math.multiplyExact(rows, columns) : 0];
  }

  boolean fits(Tensor gradient) {
    return gradient.size(0) == rows && gradient.numel() == (long) rows * columns;
  }
}
