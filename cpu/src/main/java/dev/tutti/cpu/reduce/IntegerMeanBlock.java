package dev.tutti.cpu.reduce;

import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static java.lang.foreign.ValueLayout.JAVA_DOUBLE_UNALIGNED;
import static java.lang.foreign.ValueLayout.JAVA_INT_UNALIGNED;
import static java.lang.foreign.ValueLayout.JAVA_LONG_UNALIGNED;
import static java.lang.foreign.ValueLayout.JAVA_SHORT_UNALIGNED;

import dev.tutti.DType;
import dev.tutti.ReduceOp;
import java.lang.foreign.MemorySegment;

/**
 * Computes means of integers, with sums that are wide enough for any number of inputs. The sums can
 * be copied to memory and back, so that they can also be added up elsewhere.
 */
public abstract sealed class IntegerMeanBlock extends ElementBlock {
  static final int COUNT = ARRAY_BYTES / 8;

  final int unit;
  int inputs;

  private IntegerMeanBlock(int unit) {
    this.unit = unit;
  }

  static IntegerMeanBlock create(DType dtype) {
    return dtype == DType.INT64 ? new OfLongs() : new OfSmall(dtype);
  }

  /** Copies the sums to memory: a double for each element, or two longs for one of 64 bits. */
  public abstract void storeSums(MemorySegment memory, long offset, int count);

  /** Copies the sums from memory. */
  public abstract void loadSums(MemorySegment memory, long offset, int count);

  @Override
  void begin(int newInputs) {
    inputs = newInputs;
  }

  @Override
  public int capacity() {
    return COUNT * unit;
  }

  /** Adds integers of up to 32 bits as doubles, in which sums and truncated quotients are exact. */
  private static final class OfSmall extends IntegerMeanBlock {
    private final double[] sums = new double[COUNT];
    private final byte[] bytes = new byte[COUNT];
    private final short[] shorts = new short[COUNT];
    private final int[] ints = new int[COUNT];
    private final boolean signed;

    OfSmall(DType dtype) {
      super(dtype.byteSize());
      signed = dtype != DType.UINT8;
    }

    private void widen(MemorySegment memory, long offset, int count) {
      switch (unit) {
        case 1 -> {
          MemorySegment.copy(memory, JAVA_BYTE, offset, bytes, 0, count);
          int mask = signed ? -1 : 0xff;
          for (int i = 0; i < count; i++) {
            ints[i] = bytes[i] & mask;
          }
        }
        case 2 -> {
          MemorySegment.copy(memory, JAVA_SHORT_UNALIGNED, offset, shorts, 0, count);
          for (int i = 0; i < count; i++) {
            ints[i] = shorts[i];
          }
        }
        default -> MemorySegment.copy(memory, JAVA_INT_UNALIGNED, offset, ints, 0, count);
      }
    }

    @Override
    public void load(MemorySegment memory, long offset, int length) {
      int count = length / unit;
      widen(memory, offset, count);
      for (int i = 0; i < count; i++) {
        sums[i] = ints[i];
      }
    }

    @Override
    public void combine(ReduceOp.Kind kind, MemorySegment memory, long offset, int length) {
      int count = length / unit;
      widen(memory, offset, count);
      for (int i = 0; i < count; i++) {
        sums[i] += ints[i];
      }
    }

    @Override
    public void toMean(int length) {
      VectorLoops.divide(sums, inputs, length / unit);
    }

    @Override
    public void store(MemorySegment memory, long offset, int length) {
      int count = length / unit;
      for (int i = 0; i < count; i++) {
        ints[i] = (int) sums[i];
      }
      switch (unit) {
        case 1 -> {
          for (int i = 0; i < count; i++) {
            bytes[i] = (byte) ints[i];
          }
          MemorySegment.copy(bytes, 0, memory, JAVA_BYTE, offset, count);
        }
        case 2 -> {
          for (int i = 0; i < count; i++) {
            shorts[i] = (short) ints[i];
          }
          MemorySegment.copy(shorts, 0, memory, JAVA_SHORT_UNALIGNED, offset, count);
        }
        default -> MemorySegment.copy(ints, 0, memory, JAVA_INT_UNALIGNED, offset, count);
      }
    }

    @Override
    public void storeSums(MemorySegment memory, long offset, int count) {
      MemorySegment.copy(sums, 0, memory, JAVA_DOUBLE_UNALIGNED, offset, count);
    }

    @Override
    public void loadSums(MemorySegment memory, long offset, int count) {
      MemorySegment.copy(memory, JAVA_DOUBLE_UNALIGNED, offset, sums, 0, count);
    }
  }

  /** Adds the upper and the lower 32 bits of longs separately. */
  private static final class OfLongs extends IntegerMeanBlock {
    private static final long LOW = 0xffff_ffffL;

    /** For each element the sum of the upper halves, which are signed, and that of the lower. */
    private final long[] sums = new long[2 * COUNT];

    private final long[] longs = new long[COUNT];

    OfLongs() {
      super(Long.BYTES);
    }

    @Override
    public void load(MemorySegment memory, long offset, int length) {
      int count = length / unit;
      MemorySegment.copy(memory, JAVA_LONG_UNALIGNED, offset, longs, 0, count);
      for (int i = 0; i < count; i++) {
        sums[2 * i] = longs[i] >> 32;
        sums[2 * i + 1] = longs[i] & LOW;
      }
    }

    @Override
    public void combine(ReduceOp.Kind kind, MemorySegment memory, long offset, int length) {
      int count = length / unit;
      MemorySegment.copy(memory, JAVA_LONG_UNALIGNED, offset, longs, 0, count);
      for (int i = 0; i < count; i++) {
        sums[2 * i] += longs[i] >> 32;
        sums[2 * i + 1] += longs[i] & LOW;
      }
    }

    @Override
    public void toMean(int length) {
      for (int i = 0; i < length / unit; i++) {
        longs[i] = quotient(sums[2 * i], sums[2 * i + 1], inputs);
      }
    }

    /** Returns (high · 2³² + low) / divisor, truncated toward zero. */
    private static long quotient(long high, long low, int divisor) {
      long upper = high + (low >>> 32);
      long rest = (Math.floorMod(upper, divisor) & LOW) << 32 | (low & LOW);
      long floor = (Math.floorDiv(upper, divisor) << 32) + rest / divisor;
      return upper < 0 && rest % divisor != 0 ? floor + 1 : floor;
    }

    @Override
    public void store(MemorySegment memory, long offset, int length) {
      MemorySegment.copy(longs, 0, memory, JAVA_LONG_UNALIGNED, offset, length / unit);
    }

    @Override
    public void storeSums(MemorySegment memory, long offset, int count) {
      MemorySegment.copy(sums, 0, memory, JAVA_LONG_UNALIGNED, offset, 2 * count);
    }

    @Override
    public void loadSums(MemorySegment memory, long offset, int count) {
      MemorySegment.copy(memory, JAVA_LONG_UNALIGNED, offset, sums, 0, 2 * count);
    }
  }
}
