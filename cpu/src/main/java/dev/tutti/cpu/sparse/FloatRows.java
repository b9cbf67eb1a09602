package dev.tutti.cpu.sparse;

import static java.lang.foreign.ValueLayout.JAVA_DOUBLE_UNALIGNED;
import static java.lang.foreign.ValueLayout.JAVA_FLOAT_UNALIGNED;
import static java.lang.foreign.ValueLayout.JAVA_SHORT_UNALIGNED;

import dev.tutti.spi.Elements;

/** The short rows of floating-point elements. */
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

  static final class Float16 extends ShortRows<short[]> {
    Float16(int length, int count) {
      super(length, new short[length * count], new short[BLOCK], JAVA_SHORT_UNALIGNED);
    }

    @Override
    void add(
        short[] values, short[] sums, int[] order, int[] starts, int from, int to, int length) {
      int n = 0;
      for (int place = from; place < to; place++) {
        int first = starts[place];
        int end = starts[place + 1];
        for (int j = 0; j < length; j++) {
          short alone = values[order[first] * length + j];
          if (end - first == 1) {
            sums[n++] = alone;
          } else {
            float sum = Float.float16ToFloat(alone);
            for (int i = first + 1; i < end; i++) {
              sum += Float.float16ToFloat(values[order[i] * length + j]);
            }
            sums[n++] = Float.floatToFloat16(sum);
          }
        }
      }
    }
  }

  static final class Bfloat16 extends ShortRows<short[]> {
    Bfloat16(int length, int count) {
      super(length, new short[length * count], new short[BLOCK], JAVA_SHORT_UNALIGNED);
    }

    @Override
    void add(
        short[] values, short[] sums, int[] order, int[] starts, int from, int to, int length) {
      int n = 0;
      for (int place = from; place < to; place++) {
        int first = starts[place];
        int end = starts[place + 1];
        for (int j = 0; j < length; j++) {
          short alone = values[order[first] * length + j];
          if (end - first == 1) {
            sums[n++] = alone;
          } else {
            float sum = Elements.bfloat16ToFloat(alone);
            for (int i = first + 1; i < end; i++) {
              sum += Elements.bfloat16ToFloat(values[order[i] * length + j]);
            }
            sums[n++] = Elements.floatToBfloat16(sum);
          }
        }
      }
    }
  }
}
