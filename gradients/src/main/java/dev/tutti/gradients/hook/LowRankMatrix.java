package dev.tutti.gradients.hook;

import static java.lang.foreign.ValueLayout.JAVA_FLOAT_UNALIGNED;

import dev.tutti.Tensor;
import java.lang.foreign.MemorySegment;
import java.util.Arrays;

/** A gradient viewed as an n by m matrix M, and its factors P and Q. */
final class LowRankMatrix {
  /*
   * The factors are stored transposed, so that each of their columns is contiguous: P as r by n, Q
   * as r by m. M is read one row at a time into an array, since loops over arrays are what HotSpot
   * vectorizes.
   */
  private final Tensor gradient;
  private final int parameter;
  private final LowRankMemory memory;
  private final int rows;
  private final int columns;
  private final int rank;
  private final long startOfP;
  private final long startOfQ;
  private final PowerSgdOptions options;
  private final float[] row;
  private final float[] kept;
  private final float[] p;
  private final float[] q;
  private final float[] error;

  LowRankMatrix(
      Tensor gradient,
      int parameter,
      LowRankMemory memory,
      long startOfP,
      long startOfQ,
      PowerSgdOptions options) {
    this.gradient = gradient;
    this.parameter = parameter;
    this.memory = memory;
    this.startOfP = startOfP;
    this.startOfQ = startOfQ;
    this.options = options;
    rows = memory.rows;
    columns = memory.columns;
    rank = memory.rank;
    q = memory.q;
    error = memory.error;
    row = new float[columns];
    p = new float[Math.multiplyExact(rank, rows)];
    kept = new float[options.errorFeedback() ? columns : 0];
  }

  int rowElements() {
    return p.length;
  }

  int columnElements() {
    return q.length;
  }

  void readP(Tensor ps) {
    read(ps, startOfP, p, p.length);
  }

  void writeP(Tensor ps) {
    write(p, p.length, ps, startOfP);
  }

  void readQ(Tensor qs) {
    read(qs, startOfQ, q, q.length);
  }

  void writeQ(Tensor qs) {
    write(q, q.length, qs, startOfQ);
  }

  /**
   * Keeps Q of the step before, or else fills it with numbers that depend only on their position
   * and the step.
   */
  void beginQ(long step) {
    if (!memory.begun || !options.warmStart()) {
      for (int k = 0; k < rank; k++) {
        randomColumn(memory.begun ? step : -1, k);
      }
    }
    memory.begun = true;
  }

  private void randomColumn(long step, int k) {
    for (int j = 0; j < columns; j++) {
      q[k * columns + j] = (float) options.factor(step, parameter, j, k);
    }
  }

  /**
   * Makes the columns of Q orthonormal. A column of zeros, as left by a gradient of zeros, would
   * stay zero in all later steps, so it starts again from random numbers.
   */
  void orthonormalQ(long step) {
    for (int k = 0; k < rank; k++) {
      if (MatrixLoops.isZero(q, k * columns, columns)) {
        randomColumn(step, k);
      }
    }
    MatrixLoops.orthonormalize(q, rank, columns, options.epsilon());
  }

  void orthonormalP() {
    MatrixLoops.orthonormalize(p, rank, rows, options.epsilon());
  }

  /** Adds to M what the last approximation left out, and keeps the sum in M. */
  void addError() {
    if (error.length == 0) {
      return;
    }
    for (int i = 0; i < rows; i++) {
      read(gradient, (long) i * columns, row, columns);
      MatrixLoops.addTo(error, i * columns, row, columns);
      write(row, columns, gradient, (long) i * columns);
    }
  }

  /** Computes P = M Q. */
  void multiplyQ() {
    for (int i = 0; i < rows; i++) {
      read(gradient, (long) i * columns, row, columns);
      for (int k = 0; k < rank; k++) {
        p[k * rows + i] = MatrixLoops.dot(row, q, k * columns, columns);
      }
    }
  }

  /** Computes Q = M' P. */
  void multiplyP() {
    Arrays.fill(q, 0);
    for (int i = 0; i < rows; i++) {
      read(gradient, (long) i * columns, row, columns);
      for (int k = 0; k < rank; k++) {
        MatrixLoops.addScaled(q, k * columns, row, 0, p[k * rows + i], columns);
      }
    }
  }

  /** Computes M = P Q', and the error as the previous M minus the new one. */
  void approximate() {
    for (int i = 0; i < rows; i++) {
      Arrays.fill(row, 0);
      for (int k = 0; k < rank; k++) {
        MatrixLoops.addScaled(row, 0, q, k * columns, p[k * rows + i], columns);
      }
      if (error.length > 0) {
        read(gradient, (long) i * columns, kept, columns);
        MatrixLoops.subtract(kept, row, error, i * columns, columns);
      }
      write(row, columns, gradient, (long) i * columns);
    }
  }

  /** Copies elements from a float32 tensor. */
  private static void read(Tensor tensor, long start, float[] target, int count) {
    MemorySegment.copy(tensor.segment(), JAVA_FLOAT_UNALIGNED, start * 4, target, 0, count);
  }

  /** Copies elements to a float32 tensor. */
  private static void write(float[] source, int count, Tensor tensor, long start) {
    MemorySegment.copy(source, 0, tensor.segment(), JAVA_FLOAT_UNALIGNED, start * 4, count);
  }
}
