package dev.tutti.cpu.sparse;

import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static java.lang.foreign.ValueLayout.JAVA_INT_UNALIGNED;
import static java.lang.foreign.ValueLayout.JAVA_LONG_UNALIGNED;
import static java.lang.foreign.ValueLayout.JAVA_SHORT_UNALIGNED;

import java.lang.foreign.MemorySegment;

/** Holds the short rows of integers and bools. */
final class IntegerRows {
  private IntegerRows() {}

  static final class Int64 extends ShortRows {
    private final long[] values;
    private final long[] sums = new long[BLOCK];

    Int64(int length, int count) {
      super(length, 8);
      values = new long[length * count];
    }

    @Override
    void read(MemorySegment memory, int at, int count) {
      MemorySegment.copy(memory, JAVA_LONG_UNALIGNED, 0, values, at, count);
    }

    @Override
    void add(int[] order, int[] starts, int from, int to, int length) {
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

    @Override
    void write(MemorySegment memory, long offset, int count) {
      MemorySegment.copy(sums, 0, memory, JAVA_LONG_UNALIGNED, offset, count);
    }
  }

  static final class Int32 extends ShortRows {
    private final int[] values;
    private final int[] sums = new int[BLOCK];

    Int32(int length, int count) {
      super(length, 4);
      values = new int[length * count];
    }

    @Override
    void read(MemorySegment memory, int at, int count) {
      MemorySegment.copy(memory, JAVA_INT_UNALIGNED, 0, values, at, count);
    }

    @Override
    void add(int[] order, int[] starts, int from, int to, int length) {
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

    @Override
    void write(MemorySegment memory, long offset, int count) {
      MemorySegment.copy(sums, 0, memory, JAVA_INT_UNALIGNED, offset, count);
    }
  }

  /** Holds elements of two bytes. */
  abstract static class Shorts extends ShortRows {
    final short[] values;
    final short[] sums = new short[BLOCK];

    Shorts(int length, int count) {
      super(length, 2);
      values = new short[length * count];
    }

    @Override
    final void read(MemorySegment memory, int at, int count) {
      MemorySegment.copy(memory, JAVA_SHORT_UNALIGNED, 0, values, at, count);
    }

    @Override
    final void write(MemorySegment memory, long offset, int count) {
      MemorySegment.copy(sums, 0, memory, JAVA_SHORT_UNALIGNED, offset, count);
    }
  }

  static final class Int16 extends Shorts {
    Int16(int length, int count) {
      super(length, count);
    }

    @Override
    void add(int[] order, int[] starts, int from, int to, int length) {
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

  /** Holds elements of one byte. */
  abstract static class Bytes extends ShortRows {
    final byte[] values;
    final byte[] sums = new byte[BLOCK];

    Bytes(int length, int count) {
      super(length, 1);
      values = new byte[length * count];
    }

    @Override
    final void read(MemorySegment memory, int at, int count) {
      MemorySegment.copy(memory, JAVA_BYTE, 0, values, at, count);
    }

    @Override
    final void write(MemorySegment memory, long offset, int count) {
      MemorySegment.copy(sums, 0, memory, JAVA_BYTE, offset, count);
    }
  }

  static final class Int8 extends Bytes {
    Int8(int length, int count) {
      super(length, count);
    }

    @Override
    void add(int[] order, int[] starts, int from, int to, int length) {
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

  static final class Bool extends Bytes {
    Bool(int length, int count) {
      super(length, count);
    }

    @Override
    void add(int[] order, int[] starts, int from, int to, int length) {
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
