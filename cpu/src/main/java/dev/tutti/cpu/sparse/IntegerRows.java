package dev.tutti.cpu.sparse;

import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static java.lang.foreign.ValueLayout.JAVA_INT_UNALIGNED;
import static java.lang.foreign.ValueLayout.JAVA_LONG_UNALIGNED;
import static java.lang.foreign.ValueLayout.JAVA_SHORT_UNALIGNED;

/** The short rows of integers and booleans. */
final class IntegerRows {
  private IntegerRows() {}

  static final class Int64 extends ShortRows<long[]> {
    Int64(int length, int count) {
      super(length, new long[length * count], new long[BLOCK], JAVA_LONG_UNALIGNED);
    }

    @Override
    void add(long[] values, long[] sums, int[] order, int[] starts, int from, int to, int length) {
      int n = 0;
      for (int place = from; place < to; place++) {
        for (int j = 0; j < length; j++) {
          long sum = values[order[starts[place]] * length + j];
          for (int i = starts[place] + 1; i < starts[place + 1]; i++) {
            sum += values[order[i] * length + j];
          }
          sums[n++] = sum;
        }
      }
    }
  }

  static final class Int32 extends ShortRows<int[]> {
    Int32(int length, int count) {
      super(length, new int[length * count], new int[BLOCK], JAVA_INT_UNALIGNED);
    }

    @Override
    void add(int[] values, int[] sums, int[] order, int[] starts, int from, int to, int length) {
      int n = 0;
      for (int place = from; place < to; place++) {
        for (int j = 0; j < length; j++) {
          int sum = values[order[starts[place]] * length + j];
          for (int i = starts[place] + 1; i < starts[place + 1]; i++) {
            sum += values[order[i] * length + j];
          }
          sums[n++] = sum;
        }
      }
    }
  }

  static final class Int16 extends ShortRows<short[]> {
    Int16(int length, int count) {
      super(length, new short[length * count], new short[BLOCK], JAVA_SHORT_UNALIGNED);
    }

    @Override
    void add(
        short[] values, short[] sums, int[] order, int[] starts, int from, int to, int length) {
      int n = 0;
      for (int place = from; place < to; place++) {
        for (int j = 0; j < length; j++) {
          int sum = values[order[starts[place]] * length + j];
          for (int i = starts[place] + 1; i < starts[place + 1]; i++) {
            sum += values[order[i] * length + j];
          }
          sums[n++] = (short) sum;
        }
      }
    }
  }

  static final class Int8 extends ShortRows<byte[]> {
    Int8(int length, int count) {
      super(length, new byte[length * count], new byte[BLOCK], JAVA_BYTE);
    }

    @Override
    void add(byte[] values, byte[] sums, int[] order, int[] starts, int from, int to, int length) {
      int n = 0;
      for (int place = from; place < to; place++) {
        for (int j = 0; j < length; j++) {
          int sum = values[order[starts[place]] * length + j];
          for (int i = starts[place] + 1; i < starts[place + 1]; i++) {
            sum += values[order[i] * length + j];
          }
          sums[n++] = (byte) sum;
        }
      }
    }
  }

  static final class Bool extends ShortRows<byte[]> {
    Bool(int length, int count) {
      super(length, new byte[length * count], new byte[BLOCK], JAVA_BYTE);
    }

    @Override
    void add(byte[] values, byte[] sums, int[] order, int[] starts, int from, int to, int length) {
      int n = 0;
      for (int place = from; place < to; place++) {
        int first = starts[place];
        int end = starts[place + 1];
        for (int j = 0; j < length; j++) {
          byte alone = values[order[first] * length + j];
          if (end - first == 1) {
            sums[n++] = alone;
          } else {
            int sum = alone;
            for (int i = first + 1; i < end; i++) {
              sum |= values[order[i] * length + j];
            }
            sums[n++] = (byte) (sum != 0 ? 1 : 0);
          }
        }
      }
    }
  }
}
