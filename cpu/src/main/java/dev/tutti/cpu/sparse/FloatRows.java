package dev.tutti.cpu.sparse;

import static java.lang.foreign.ValueLayout.JAVA_DOUBLE_UNALIGNED;
import static java.lang.foreign.ValueLayout.JAVA_FLOAT_UNALIGNED;

/** The short rows of the types in which parameters are trained. */
final class FloatRows {
  private FloatRows() {}

  static final class Float64 extends ShortRows<double[]> {
    Float64(int length, int count) {
      super(length, new double[length * count], new double[BLOCK], JAVA_DOUBLE_UNALIGNED);
    }

    @Override
    void add(
        double[] values, double[] sums, int[] order, int[] starts, int from, int to, int length) {
      int n = 0;
      for (int place = from; place < to; place++) {
        for (int j = 0; j < length; j++) {
          double sum = values[order[starts[place]] * length + j];
          for (int i = starts[place] + 1; i < starts[place + 1]; i++) {
            sum += values[order[i] * length + j];
          }
          sums[n++] = sum;
        }
      }
    }
  }

  static final class Float32 extends ShortRows<float[]> {
    Float32(int length, int count) {
      super(length, new float[length * count], new float[BLOCK], JAVA_FLOAT_UNALIGNED);
    }

    @Override
    void add(
        float[] values, float[] sums, int[] order, int[] starts, int from, int to, int length) {
      int n = 0;
      for (int place = from; place < to; place++) {
        for (int j = 0; j < length; j++) {
          float sum = values[order[starts[place]] * length + j];
          for (int i = starts[place] + 1; i < starts[place + 1]; i++) {
            sum += values[order[i] * length + j];
          }
          sums[n++] = sum;
        }
      }
    }
  }
}
