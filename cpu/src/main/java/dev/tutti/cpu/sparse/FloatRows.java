package dev.tutti.cpu.sparse;

import static java.lang.foreign.ValueLayout.JAVA_DOUBLE_UNALIGNED;
import static java.lang.foreign.ValueLayout.JAVA_FLOAT_UNALIGNED;

import dev.tutti.spi.Elements;
import java.lang.foreign.MemorySegment;

/** Holds the short rows of elements that have a point. */
final class FloatRows {
  private FloatRows() {}

  static final class Float64 extends ShortRows {
    private final double[] values;
    private final double[] sums = new double[BLOCK];

    Float64(int length, int count) {
      super(length, 8);
      values = new double[length * count];
    }

    @Override
    void read(MemorySegment memory, int at, int count) {
      MemorySegment.copy(memory, JAVA_DOUBLE_UNALIGNED, 0, values, at, count);
    }

    @Override
    void add(int[] order, int[] starts, int from, int to, int length) {
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

    @Override
    void write(MemorySegment memory, long offset, int count) {
      MemorySegment.copy(sums, 0, memory, JAVA_DOUBLE_UNALIGNED, offset, count);
    }
  }

  static final class Float32 extends ShortRows {
    private final float[] values;
    private final float[] sums = new float[BLOCK];

    Float32(int length, int count) {
      super(length, 4);
      values = new float[length * count];
    }

    @Override
    void read(MemorySegment memory, int at, int count) {
      MemorySegment.copy(memory, JAVA_FLOAT_UNALIGNED, 0, values, at, count);
    }

    @Override
    void add(int[] order, int[] starts, int from, int to, int length) {
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

    @Override
    void write(MemorySegment memory, long offset, int count) {
      MemorySegment.copy(sums, 0, memory, JAVA_FLOAT_UNALIGNED, offset, count);
    }
  }

  static final class Float16 extends IntegerRows.Shorts {
    Float16(int length, int count) {
      super(length, count);
    }

    @Override
    void add(int[] order, int[] starts, int from, int to, int length) {
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

  static final class Bfloat16 extends IntegerRows.Shorts {
    Bfloat16(int length, int count) {
      super(length, count);
    }

    @Override
    void add(int[] order, int[] starts, int from, int to, int length) {
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
