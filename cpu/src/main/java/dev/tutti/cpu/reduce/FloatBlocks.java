package dev.tutti.cpu.reduce;

import static dev.tutti.cpu.reduce.VectorLoops.atLeastShortest;
import static java.lang.foreign.ValueLayout.JAVA_DOUBLE_UNALIGNED;
import static java.lang.foreign.ValueLayout.JAVA_FLOAT_UNALIGNED;
import static java.lang.foreign.ValueLayout.JAVA_SHORT_UNALIGNED;

import dev.tutti.ReduceOp;
import dev.tutti.spi.Elements;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.nio.DoubleBuffer;
import java.nio.FloatBuffer;

/** The blocks of floating-point elements. */
final class FloatBlocks {
  /**
   * The bits of a double that are zero in divisors with at most 11 significant bits. A quotient of
   * a half and such a divisor can be rounded to float and then to half: the result is the half next
   * to the quotient.
   */
  private static final long INEXACT_IN_HALVES = (1L << (52 - 10)) - 1;

  /** The greatest exponent of a power of two by which the floats of halves are scaled exactly. */
  private static final int EXACT_EXPONENT = 16;

  private FloatBlocks() {}

  static class Float64 extends ViewedBlock<DoubleBuffer> {
    final double[] a = new double[ARRAY_BYTES / 8];
    final double[] b = new double[ARRAY_BYTES / 8];

    Float64() {
      super(ByteBuffer::asDoubleBuffer, 8);
    }

    @Override
    public void load(MemorySegment memory, long offset, int bytes) {
      MemorySegment.copy(memory, JAVA_DOUBLE_UNALIGNED, offset, a, 0, bytes / 8);
    }

    @Override
    void combineCopied(ReduceOp.Kind kind, MemorySegment memory, long offset, int bytes) {
      MemorySegment.copy(memory, JAVA_DOUBLE_UNALIGNED, offset, b, 0, bytes / 8);
      VectorLoops.reduce(kind, a, b, bytes / 8);
    }

    @Override
    void add(DoubleBuffer view, int from, int count) {
      int first = from & INDEX;
      int n = Math.min(count, ARRAY_BYTES);
      for (int i = 0; i < n; i++) {
        a[i] += view.get(first + i);
      }
    }

    @Override
    void sum(DoubleBuffer left, int leftFrom, DoubleBuffer right, int rightFrom, int count) {
      int leftFirst = leftFrom & INDEX;
      int rightFirst = rightFrom & INDEX;
      int n = Math.min(count, ARRAY_BYTES);
      for (int i = 0; i < n; i++) {
        a[i] = left.get(leftFirst + i) + right.get(rightFirst + i);
      }
    }

    @Override
    public void store(MemorySegment memory, long offset, int bytes) {
      MemorySegment.copy(a, 0, memory, JAVA_DOUBLE_UNALIGNED, offset, bytes / 8);
    }

    @Override
    public void scale(double factor, int bytes) {
      VectorLoops.scale(a, factor, bytes / 8);
    }

    @Override
    public void divide(double divisor, int bytes) {
      VectorLoops.divide(a, divisor, bytes / 8);
    }
  }

  static class Float32 extends ViewedBlock<FloatBuffer> {
    final float[] a = new float[ARRAY_BYTES / 4];
    final float[] b = new float[ARRAY_BYTES / 4];

    Float32() {
      super(ByteBuffer::asFloatBuffer, 4);
    }

    @Override
    public void load(MemorySegment memory, long offset, int bytes) {
      MemorySegment.copy(memory, JAVA_FLOAT_UNALIGNED, offset, a, 0, bytes / 4);
    }

    @Override
    void combineCopied(ReduceOp.Kind kind, MemorySegment memory, long offset, int bytes) {
      MemorySegment.copy(memory, JAVA_FLOAT_UNALIGNED, offset, b, 0, bytes / 4);
      VectorLoops.reduce(kind, a, b, bytes / 4);
    }

    @Override
    void add(FloatBuffer view, int from, int count) {
      int first = from & INDEX;
      int n = Math.min(count, ARRAY_BYTES);
      for (int i = 0; i < n; i++) {
        a[i] += view.get(first + i);
      }
    }

    @Override
    void sum(FloatBuffer left, int leftFrom, FloatBuffer right, int rightFrom, int count) {
      int leftFirst = leftFrom & INDEX;
      int rightFirst = rightFrom & INDEX;
      int n = Math.min(count, ARRAY_BYTES);
      for (int i = 0; i < n; i++) {
        a[i] = left.get(leftFirst + i) + right.get(rightFirst + i);
      }
    }

    @Override
    public void store(MemorySegment memory, long offset, int bytes) {
      MemorySegment.copy(a, 0, memory, JAVA_FLOAT_UNALIGNED, offset, bytes / 4);
    }

    @Override
    public void scale(double factor, int bytes) {
      int n = atLeastShortest(bytes / 4);
      float single = (float) factor;
      if (single == factor) {
        VectorLoops.scale(a, single, n);
      } else {
        for (int i = 0; i < n; i++) {
          a[i] = (float) (a[i] * factor);
        }
      }
    }

    @Override
    public void divide(double divisor, int bytes) {
      int n = atLeastShortest(bytes / 4);
      float single = (float) divisor;
      if (single == divisor) {
        VectorLoops.divide(a, single, n);
      } else {
        for (int i = 0; i < n; i++) {
          a[i] = (float) (a[i] / divisor);
        }
      }
    }
  }

  /** Widens two-byte elements to floats, on which every operator is computed. */
  abstract static class Halves extends ElementBlock {
    static final int COUNT = ARRAY_BYTES / 4;
    final Floats a = new Floats();
    final Floats b = new Floats();

    /** An array, and the same array as a segment for copying its bits. */
    static final class Floats {
      final float[] array = new float[COUNT];
      final MemorySegment bytes = MemorySegment.ofArray(array);
    }

    @Override
    public int capacity() {
      return COUNT * 2;
    }

    /** Widens elements, possibly in another order and with extra elements at the end. */
    abstract void widen(MemorySegment memory, long offset, Floats target, int bytes);

    @Override
    public void load(MemorySegment memory, long offset, int bytes) {
      widen(memory, offset, a, bytes);
    }

    @Override
    public void combine(ReduceOp.Kind kind, MemorySegment memory, long offset, int bytes) {
      widen(memory, offset, b, bytes);
      VectorLoops.reduce(kind, a.array, b.array, floats(bytes));
    }

    /** Returns an even number, because elements are widened in pairs. */
    static int floats(int bytes) {
      return (bytes + 3) / 4 * 2;
    }

    @Override
    public void scale(double factor, int bytes) {
      float[] floats = a.array;
      int n = floats(bytes);
      if (isSmallPowerOfTwo(factor)) {
        VectorLoops.scale(floats, (float) factor, n);
      } else {
        for (int i = 0; i < n; i++) {
          floats[i] = Elements.roundToOdd(floats[i] * factor);
        }
      }
    }

    private static boolean isSmallPowerOfTwo(double factor) {
      int exponent = Math.getExponent(factor);
      return factor == Math.scalb(1.0, exponent) && Math.abs(exponent) <= EXACT_EXPONENT;
    }

    @Override
    public void divide(double divisor, int bytes) {
      float[] floats = a.array;
      int n = floats(bytes);
      if ((Double.doubleToRawLongBits(divisor) & INEXACT_IN_HALVES) == 0) {
        VectorLoops.divide(floats, (float) divisor, n);
      } else {
        for (int i = 0; i < n; i++) {
          floats[i] = Elements.roundToOdd(floats[i] / divisor);
        }
      }
    }
  }

  static class Float16 extends Halves {
    private final short[] halves = new short[COUNT];

    @Override
    void widen(MemorySegment memory, long offset, Floats target, int bytes) {
      MemorySegment.copy(memory, JAVA_SHORT_UNALIGNED, offset, halves, 0, bytes / 2);
      VectorLoops.widen(halves, target.array, bytes / 2);
    }

    @Override
    public void store(MemorySegment memory, long offset, int bytes) {
      VectorLoops.narrow(a.array, halves, bytes / 2);
      MemorySegment.copy(halves, 0, memory, JAVA_SHORT_UNALIGNED, offset, bytes / 2);
    }
  }

  static class Bfloat16 extends Halves {
    /*
     * The compiler vectorizes conversions between half and float, but neither those between short
     * and int nor the reinterpretation of an int as a float. Pairs of bfloat16 are therefore read
     * as ints and split into two ints with the float bits of the lower and the upper element, and
     * these are copied. This leaves the floats of a block out of order, which storing undoes.
     */
    private final int[] pairs = new int[COUNT / 2];
    private final int[] lower = new int[COUNT / 2];
    private final int[] upper = new int[COUNT / 2];
    private final MemorySegment pairBytes = MemorySegment.ofArray(pairs);
    private final MemorySegment lowerBytes = MemorySegment.ofArray(lower);
    private final MemorySegment upperBytes = MemorySegment.ofArray(upper);

    @Override
    void widen(MemorySegment memory, long offset, Floats target, int bytes) {
      int n = (bytes + 3) / 4;
      MemorySegment.copy(memory, offset, pairBytes, 0, bytes);
      VectorLoops.split(pairs, lower, upper, n);
      MemorySegment.copy(lowerBytes, 0, target.bytes, 0, n * 4L);
      MemorySegment.copy(upperBytes, 0, target.bytes, n * 4L, n * 4L);
    }

    @Override
    public void store(MemorySegment memory, long offset, int bytes) {
      int n = (bytes + 3) / 4;
      MemorySegment.copy(a.bytes, 0, lowerBytes, 0, n * 4L);
      MemorySegment.copy(a.bytes, n * 4L, upperBytes, 0, n * 4L);
      VectorLoops.joinRounded(lower, upper, pairs, n);
      MemorySegment.copy(pairBytes, 0, memory, offset, bytes);
    }
  }
}
