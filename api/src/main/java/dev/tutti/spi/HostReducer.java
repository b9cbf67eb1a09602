package dev.tutti.spi;

import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static java.lang.foreign.ValueLayout.JAVA_DOUBLE_UNALIGNED;
import static java.lang.foreign.ValueLayout.JAVA_FLOAT_UNALIGNED;
import static java.lang.foreign.ValueLayout.JAVA_INT_UNALIGNED;
import static java.lang.foreign.ValueLayout.JAVA_LONG_UNALIGNED;
import static java.lang.foreign.ValueLayout.JAVA_SHORT_UNALIGNED;

import dev.tutti.DType;
import dev.tutti.ReduceOp;
import dev.tutti.internal.Elements;
import java.lang.foreign.MemorySegment;

/**
 * Reduces runs of elements in host memory: {@code accumulator = accumulator op input}, each step
 * rounded to the element type. Any thread may call it; it allocates nothing after a thread's first
 * call.
 */
public final class HostReducer {
  /*
   * Elements are widened, a block that fits the first-level cache at a time, into arrays of one of
   * four kinds: float for the types up to 32 bits that have a point, double, int for the integers up
   * to 32 bits, and long. Loops over arrays are what the compiler turns into vector code, and four
   * kinds times seven operators are few enough to read. Narrowing an int keeps its low bits, so that
   * sums and products wrap as those of the narrow type would.
   */
  private static final int BLOCK = 1024;

  private static final ThreadLocal<Scratch> SCRATCH = ThreadLocal.withInitial(Scratch::new);

  private HostReducer() {}

  /**
   * Reduces one run into another. AVG and PREMUL_SUM add; their scaling is {@link #scale}.
   *
   * <p>MIN and MAX keep the accumulator's element unless the input's is less or greater, so a NaN
   * of the accumulator stays. BOOL knows 0 and 1 only: SUM, MAX and BOR are or, PRODUCT, MIN and
   * BAND are and.
   *
   * @param kind the operator
   * @param dtype the element type; complex ones are added as pairs
   * @param accumulator read and written
   * @param accumulatorOffset first byte
   * @param input read
   * @param inputOffset first byte
   * @param count number of elements
   * @throws IllegalArgumentException if the operator is not defined on the type
   */
  public static void reduce(
      ReduceOp.Kind kind,
      DType dtype,
      MemorySegment accumulator,
      long accumulatorOffset,
      MemorySegment input,
      long inputOffset,
      long count) {
    DType real = dtype.toReal();
    long left = dtype.isComplex() ? count * 2 : count;
    if (real.isOpaque()) {
      throw new IllegalArgumentException(dtype.label() + " cannot be reduced");
    }
    Scratch scratch = SCRATCH.get();
    int unit = real.byteSize();
    long a = accumulatorOffset;
    long b = inputOffset;
    while (left > 0) {
      int n = (int) Math.min(left, BLOCK);
      switch (real) {
        case FLOAT64 -> {
          MemorySegment.copy(accumulator, JAVA_DOUBLE_UNALIGNED, a, scratch.doubleA, 0, n);
          MemorySegment.copy(input, JAVA_DOUBLE_UNALIGNED, b, scratch.doubleB, 0, n);
          reduceDoubles(kind, scratch.doubleA, scratch.doubleB, n);
          MemorySegment.copy(scratch.doubleA, 0, accumulator, JAVA_DOUBLE_UNALIGNED, a, n);
        }
        case FLOAT32, FLOAT16, BFLOAT16 -> {
          loadFloats(real, accumulator, a, scratch.floatA, scratch.shorts, n);
          loadFloats(real, input, b, scratch.floatB, scratch.shorts, n);
          reduceFloats(kind, scratch.floatA, scratch.floatB, n);
          storeFloats(real, accumulator, a, scratch.floatA, scratch.shorts, n);
        }
        case INT64 -> {
          MemorySegment.copy(accumulator, JAVA_LONG_UNALIGNED, a, scratch.longA, 0, n);
          MemorySegment.copy(input, JAVA_LONG_UNALIGNED, b, scratch.longB, 0, n);
          reduceLongs(kind, scratch.longA, scratch.longB, n);
          MemorySegment.copy(scratch.longA, 0, accumulator, JAVA_LONG_UNALIGNED, a, n);
        }
        default -> {
          loadInts(real, accumulator, a, scratch.intA, scratch, n);
          loadInts(real, input, b, scratch.intB, scratch, n);
          reduceInts(real == DType.BOOL ? boolKind(kind) : kind, scratch.intA, scratch.intB, n);
          storeInts(real, accumulator, a, scratch.intA, scratch, n);
        }
      }
      a += (long) n * unit;
      b += (long) n * unit;
      left -= n;
    }
  }

  /**
   * Multiplies a run by a factor, rounding once to the element type; integers truncate toward zero.
   *
   * @param dtype the element type
   * @param memory read and written
   * @param offset first byte
   * @param count number of elements
   * @param factor the factor; complex elements have both parts scaled
   */
  public static void scale(
      DType dtype, MemorySegment memory, long offset, long count, double factor) {
    DType real = dtype.toReal();
    long numbers = dtype.isComplex() ? count * 2 : count;
    if (real == DType.FLOAT32) {
      float single = (float) factor;
      boolean exact = single == factor;
      for (long i = 0; i < numbers; i++) {
        long at = offset + i * 4;
        float value = memory.get(JAVA_FLOAT_UNALIGNED, at);
        memory.set(JAVA_FLOAT_UNALIGNED, at, exact ? value * single : (float) (value * factor));
      }
      return;
    }
    for (long i = 0; i < numbers; i++) {
      long at = offset + i * real.byteSize();
      double value = Elements.getDouble(real, memory, at);
      Elements.setDouble(real, memory, at, value * factor);
    }
  }

  /**
   * Divides a run by a whole number, rounding once to the element type; integers truncate toward
   * zero. Is what AVG does last.
   *
   * @param dtype the element type, not BOOL
   * @param memory read and written
   * @param offset first byte
   * @param count number of elements
   * @param divisor positive
   */
  public static void divide(
      DType dtype, MemorySegment memory, long offset, long count, int divisor) {
    DType real = dtype.toReal();
    long numbers = dtype.isComplex() ? count * 2 : count;
    int unit = real.byteSize();
    if (real == DType.FLOAT32) {
      for (long i = 0; i < numbers; i++) {
        long at = offset + i * 4;
        memory.set(JAVA_FLOAT_UNALIGNED, at, memory.get(JAVA_FLOAT_UNALIGNED, at) / divisor);
      }
    } else if (real.isFloatingPoint()) {
      for (long i = 0; i < numbers; i++) {
        long at = offset + i * unit;
        Elements.setDouble(real, memory, at, Elements.getDouble(real, memory, at) / divisor);
      }
    } else {
      for (long i = 0; i < numbers; i++) {
        long at = offset + i * unit;
        Elements.setLong(real, memory, at, Elements.getLong(real, memory, at) / divisor);
      }
    }
  }

  private static ReduceOp.Kind boolKind(ReduceOp.Kind kind) {
    return switch (kind) {
      case SUM, MAX, BOR, AVG, PREMUL_SUM -> ReduceOp.Kind.BOR;
      case PRODUCT, MIN, BAND -> ReduceOp.Kind.BAND;
      case BXOR -> ReduceOp.Kind.BXOR;
    };
  }

  private static void reduceFloats(ReduceOp.Kind kind, float[] a, float[] b, int n) {
    switch (kind) {
      case SUM, AVG, PREMUL_SUM -> {
        for (int i = 0; i < n; i++) {
          a[i] += b[i];
        }
      }
      case PRODUCT -> {
        for (int i = 0; i < n; i++) {
          a[i] *= b[i];
        }
      }
      case MIN -> {
        for (int i = 0; i < n; i++) {
          a[i] = b[i] < a[i] ? b[i] : a[i];
        }
      }
      case MAX -> {
        for (int i = 0; i < n; i++) {
          a[i] = b[i] > a[i] ? b[i] : a[i];
        }
      }
      default -> throw notDefined(kind);
    }
  }

  private static void reduceDoubles(ReduceOp.Kind kind, double[] a, double[] b, int n) {
    switch (kind) {
      case SUM, AVG, PREMUL_SUM -> {
        for (int i = 0; i < n; i++) {
          a[i] += b[i];
        }
      }
      case PRODUCT -> {
        for (int i = 0; i < n; i++) {
          a[i] *= b[i];
        }
      }
      case MIN -> {
        for (int i = 0; i < n; i++) {
          a[i] = b[i] < a[i] ? b[i] : a[i];
        }
      }
      case MAX -> {
        for (int i = 0; i < n; i++) {
          a[i] = b[i] > a[i] ? b[i] : a[i];
        }
      }
      default -> throw notDefined(kind);
    }
  }

  private static void reduceInts(ReduceOp.Kind kind, int[] a, int[] b, int n) {
    switch (kind) {
      case SUM, AVG, PREMUL_SUM -> {
        for (int i = 0; i < n; i++) {
          a[i] += b[i];
        }
      }
      case PRODUCT -> {
        for (int i = 0; i < n; i++) {
          a[i] *= b[i];
        }
      }
      case MIN -> {
        for (int i = 0; i < n; i++) {
          a[i] = Math.min(a[i], b[i]);
        }
      }
      case MAX -> {
        for (int i = 0; i < n; i++) {
          a[i] = Math.max(a[i], b[i]);
        }
      }
      case BAND -> {
        for (int i = 0; i < n; i++) {
          a[i] &= b[i];
        }
      }
      case BOR -> {
        for (int i = 0; i < n; i++) {
          a[i] |= b[i];
        }
      }
      case BXOR -> {
        for (int i = 0; i < n; i++) {
          a[i] ^= b[i];
        }
      }
    }
  }

  private static void reduceLongs(ReduceOp.Kind kind, long[] a, long[] b, int n) {
    switch (kind) {
      case SUM, AVG, PREMUL_SUM -> {
        for (int i = 0; i < n; i++) {
          a[i] += b[i];
        }
      }
      case PRODUCT -> {
        for (int i = 0; i < n; i++) {
          a[i] *= b[i];
        }
      }
      case MIN -> {
        for (int i = 0; i < n; i++) {
          a[i] = Math.min(a[i], b[i]);
        }
      }
      case MAX -> {
        for (int i = 0; i < n; i++) {
          a[i] = Math.max(a[i], b[i]);
        }
      }
      case BAND -> {
        for (int i = 0; i < n; i++) {
          a[i] &= b[i];
        }
      }
      case BOR -> {
        for (int i = 0; i < n; i++) {
          a[i] |= b[i];
        }
      }
      case BXOR -> {
        for (int i = 0; i < n; i++) {
          a[i] ^= b[i];
        }
      }
    }
  }

  private static IllegalArgumentException notDefined(ReduceOp.Kind kind) {
    return new IllegalArgumentException(kind + " is not defined on floating-point elements");
  }

  private static void loadFloats(
      DType dtype, MemorySegment memory, long offset, float[] target, short[] shorts, int n) {
    if (dtype == DType.FLOAT32) {
      MemorySegment.copy(memory, JAVA_FLOAT_UNALIGNED, offset, target, 0, n);
      return;
    }
    MemorySegment.copy(memory, JAVA_SHORT_UNALIGNED, offset, shorts, 0, n);
    if (dtype == DType.FLOAT16) {
      for (int i = 0; i < n; i++) {
        target[i] = Float.float16ToFloat(shorts[i]);
      }
    } else {
      for (int i = 0; i < n; i++) {
        target[i] = Float.intBitsToFloat(shorts[i] << 16);
      }
    }
  }

  private static void storeFloats(
      DType dtype, MemorySegment memory, long offset, float[] source, short[] shorts, int n) {
    if (dtype == DType.FLOAT32) {
      MemorySegment.copy(source, 0, memory, JAVA_FLOAT_UNALIGNED, offset, n);
      return;
    }
    if (dtype == DType.FLOAT16) {
      for (int i = 0; i < n; i++) {
        shorts[i] = Float.floatToFloat16(source[i]);
      }
    } else {
      for (int i = 0; i < n; i++) {
        shorts[i] = Elements.floatToBfloat16(source[i]);
      }
    }
    MemorySegment.copy(shorts, 0, memory, JAVA_SHORT_UNALIGNED, offset, n);
  }

  private static void loadInts(
      DType dtype, MemorySegment memory, long offset, int[] target, Scratch scratch, int n) {
    switch (dtype) {
      case INT32 -> MemorySegment.copy(memory, JAVA_INT_UNALIGNED, offset, target, 0, n);
      case INT16 -> {
        MemorySegment.copy(memory, JAVA_SHORT_UNALIGNED, offset, scratch.shorts, 0, n);
        for (int i = 0; i < n; i++) {
          target[i] = scratch.shorts[i];
        }
      }
      default -> {
        byte[] bytes = scratch.bytes;
        MemorySegment.copy(memory, JAVA_BYTE, offset, bytes, 0, n);
        if (dtype == DType.INT8) {
          for (int i = 0; i < n; i++) {
            target[i] = bytes[i];
          }
        } else if (dtype == DType.UINT8) {
          for (int i = 0; i < n; i++) {
            target[i] = bytes[i] & 0xff;
          }
        } else {
          for (int i = 0; i < n; i++) {
            target[i] = bytes[i] == 0 ? 0 : 1;
          }
        }
      }
    }
  }

  private static void storeInts(
      DType dtype, MemorySegment memory, long offset, int[] source, Scratch scratch, int n) {
    switch (dtype) {
      case INT32 -> MemorySegment.copy(source, 0, memory, JAVA_INT_UNALIGNED, offset, n);
      case INT16 -> {
        for (int i = 0; i < n; i++) {
          scratch.shorts[i] = (short) source[i];
        }
        MemorySegment.copy(scratch.shorts, 0, memory, JAVA_SHORT_UNALIGNED, offset, n);
      }
      default -> {
        for (int i = 0; i < n; i++) {
          scratch.bytes[i] = (byte) source[i];
        }
        MemorySegment.copy(scratch.bytes, 0, memory, JAVA_BYTE, offset, n);
      }
    }
  }

  private static final class Scratch {
    final float[] floatA = new float[BLOCK];
    final float[] floatB = new float[BLOCK];
    final double[] doubleA = new double[BLOCK];
    final double[] doubleB = new double[BLOCK];
    final int[] intA = new int[BLOCK];
    final int[] intB = new int[BLOCK];
    final long[] longA = new long[BLOCK];
    final long[] longB = new long[BLOCK];
    final short[] shorts = new short[BLOCK];
    final byte[] bytes = new byte[BLOCK];
  }
}
