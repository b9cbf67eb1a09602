package dev.tutti.contracts.fuzz;

import dev.tutti.DType;
import dev.tutti.ReduceOp;
import java.math.BigInteger;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Arrays;

/**
 * A reference that computes, as bytes, what each rank contributes to a step and what the result
 * must be, with plain loops over numbers and without the code under test.
 *
 * <p>Data that is only moved has random bits. Reductions are exact: integers wrap except in means,
 * and real numbers are whole and so small that no order of the ranks causes rounding. Some of the
 * elements of AVG are next to the limits of their type, and some of those of MIN and MAX are NaN.
 */
final class ProgramReference {
  private static final double[] FACTORS = {1, -0.5, 2, 0.5};
  private static final double[] POWERS = {1, -1, 2, -2, 0.5};

  private final long seed;
  private final boolean dividesTheSum;
  private final boolean nanWins;

  /**
   * Creates the reference for a program.
   *
   * @param seed the program's seed
   * @param dividesTheSum whether AVG divides a sum that does not overflow
   * @param nanWins whether MIN and MAX are NaN where the element of a rank is
   */
  ProgramReference(long seed, boolean dividesTheSum, boolean nanWins) {
    this.seed = seed;
    this.dividesTheSum = dividesTheSum;
    this.nanWins = nanWins;
  }

  /** Returns the factor of a rank for PREMUL_SUM. */
  static double factor(int rank) {
    return FACTORS[rank % FACTORS.length];
  }

  /** Returns the operator of a rank. */
  static ReduceOp op(ReduceOp.Kind kind, int rank) {
    return kind == ReduceOp.Kind.PREMUL_SUM
        ? ReduceOp.premulSum(factor(rank))
        : ReduceOp.ofName(kind.name());
  }

  /** Creates elements that are only moved: random bits, or 0 or 1 for bool. */
  byte[] moved(Step step, int slot, int rank, int count) {
    byte[] bytes = new byte[Math.multiplyExact(count, step.dtype().byteSize())];
    long state = state(step, slot, rank);
    for (int i = 0; i < bytes.length; i += Long.BYTES) {
      long bits = mix(state + i);
      for (int k = i; k < Math.min(bytes.length, i + Long.BYTES); k++, bits >>>= 8) {
        bytes[k] = (byte) (step.dtype() == DType.BOOL ? bits & 1 : bits);
      }
    }
    return bytes;
  }

  /** Creates a rank's contribution to a reduction. */
  byte[] brought(Step step, int slot, int rank, int size, int count) {
    byte[] result = new byte[count * step.dtype().byteSize()];
    ByteBuffer bytes = over(result);
    for (int i = 0; i < reals(step.dtype(), count); i++) {
      if (isReal(step.dtype())) {
        put(bytes, step.dtype(), i, real(step, slot, rank, size, i));
      } else {
        put(bytes, step.dtype(), i, whole(step, slot, rank, size, i));
      }
    }
    return result;
  }

  /** Computes a reduction over the ranks of a group. */
  byte[] reduced(Step step, int slot, int size, int count) {
    byte[] result = new byte[count * step.dtype().byteSize()];
    ByteBuffer bytes = over(result);
    for (int i = 0; i < reals(step.dtype(), count); i++) {
      if (isReal(step.dtype())) {
        put(bytes, step.dtype(), i, reducedReal(step, slot, size, i));
      } else {
        put(bytes, step.dtype(), i, reducedWhole(step, slot, size, i));
      }
    }
    return result;
  }

  private double reducedReal(Step step, int slot, int size, int i) {
    if (step.op() == ReduceOp.Kind.AVG) {
      return meanOfReals(step, slot, size, i);
    }
    boolean scales = step.op() == ReduceOp.Kind.PREMUL_SUM;
    double result = real(step, slot, 0, size, i) * (scales ? factor(0) : 1);
    for (int rank = 1; rank < size; rank++) {
      double next = real(step, slot, rank, size, i) * (scales ? factor(rank) : 1);
      result =
          switch (step.op()) {
            case SUM, PREMUL_SUM -> result + next;
            case PRODUCT -> result * next;
            case MIN -> Double.isNaN(next) || next < result ? next : result;
            case MAX -> Double.isNaN(next) || next > result ? next : result;
            case AVG, BAND, BOR, BXOR -> throw new IllegalArgumentException(step.toString());
          };
    }
    return result;
  }

  /** Adds numbers that are small enough for float64, which lose no bit by this. */
  private double meanOfReals(Step step, int slot, int size, int i) {
    double sum = 0;
    for (int rank = 0; rank < size; rank++) {
      sum += real(step, slot, rank, size, i) * 0x1p-30;
    }
    return sum / size * 0x1p30;
  }

  private long reducedWhole(Step step, int slot, int size, int i) {
    if (step.op() == ReduceOp.Kind.AVG) {
      BigInteger sum = BigInteger.ZERO;
      for (int rank = 0; rank < size; rank++) {
        sum = sum.add(BigInteger.valueOf(whole(step, slot, rank, size, i)));
      }
      return sum.divide(BigInteger.valueOf(size)).longValueExact();
    }
    long result = whole(step, slot, 0, size, i);
    for (int rank = 1; rank < size; rank++) {
      result = combined(step, result, whole(step, slot, rank, size, i));
    }
    return result;
  }

  private static long combined(Step step, long a, long b) {
    boolean bool = step.dtype() == DType.BOOL;
    return switch (step.op()) {
      case SUM -> bool ? a | b : a + b;
      case PRODUCT -> bool ? a & b : a * b;
      case MIN -> a < b ? a : b;
      case MAX -> a > b ? a : b;
      case BAND -> a & b;
      case BOR -> a | b;
      case BXOR -> a ^ b;
      case AVG, PREMUL_SUM -> throw new IllegalArgumentException(step.toString());
    };
  }

  /**
   * Returns one real number that a rank contributes. Zeros have no sign, and products contain no
   * zeros.
   */
  private double real(Step step, int slot, int rank, int size, int i) {
    long bits = mix(state(step, slot, rank) + i) >>> 1;
    return switch (step.op()) {
      case SUM -> within(bits, Math.max(1, 127 / size));
      case AVG ->
          dividesTheSum && isExtreme(step, slot, i)
              ? nearTheLimit(step, slot, i, bits)
              : size * (double) within(bits, Math.max(1, 250 / (size * size)));
      case PRODUCT -> POWERS[(int) (bits % POWERS.length)];
      case PREMUL_SUM -> 2 * (double) (1 + bits % Math.max(1, 60 / size));
      case MIN, MAX ->
          nanWins && isExtreme(step, slot, i) && bits % 3 == 0 ? Double.NaN : within(bits, 120);
      case BAND, BOR, BXOR -> throw new IllegalArgumentException(step.toString());
    };
  }

  /** Returns whether the elements of all ranks at a place are next to the limits, or may be NaN. */
  private boolean isExtreme(Step step, int slot, int i) {
    return mix(state(step, slot, -1) + i) % 4 == 0;
  }

  /** Returns a number with the same magnitude on all ranks, so that their sum has few bits. */
  private double nearTheLimit(Step step, int slot, int i, long bits) {
    int exponent =
        switch (step.dtype()) {
          case FLOAT64, COMPLEX128 -> 1023;
          case FLOAT16 -> 15;
          default -> 127;
        };
    double magnitude = Math.scalb(mix(state(step, slot, -2) + i) % 2 == 0 ? 1 : 1.5, exponent);
    return bits % 4 == 0 ? -magnitude : magnitude;
  }

  /**
   * Returns one integer that a rank contributes, which may have any bits of the type, but small
   * multiples of the number of ranks for AVG where sums may wrap.
   */
  private long whole(Step step, int slot, int rank, int size, int i) {
    long bits = mix(state(step, slot, rank) + i);
    if (step.dtype() == DType.BOOL) {
      return bits & 1;
    }
    if (step.op() == ReduceOp.Kind.AVG && !dividesTheSum) {
      long value = size * within(bits >>> 1, 120 / size / size);
      return step.dtype() == DType.UINT8 ? Math.abs(value) : value;
    }
    return switch (step.dtype()) {
      case INT8 -> (byte) bits;
      case UINT8 -> bits & 0xff;
      case INT16 -> (short) bits;
      case INT32 -> (int) bits;
      default -> bits;
    };
  }

  private static long within(long bits, long limit) {
    return bits % (2 * limit + 1) - limit;
  }

  private static boolean isReal(DType dtype) {
    return dtype.isFloatingPoint() || dtype.isComplex();
  }

  private static int reals(DType dtype, int count) {
    return dtype.isComplex() ? 2 * count : count;
  }

  private static ByteBuffer over(byte[] bytes) {
    return ByteBuffer.wrap(bytes).order(ByteOrder.nativeOrder());
  }

  /** Encodes a number; a NaN has all bits, as on a GPU. */
  private static void put(ByteBuffer bytes, DType dtype, int i, double value) {
    boolean isNan = Double.isNaN(value);
    switch (dtype) {
      case FLOAT64, COMPLEX128 ->
          bytes.putLong(8 * i, isNan ? Long.MAX_VALUE : Double.doubleToRawLongBits(value));
      case FLOAT32, COMPLEX64 ->
          bytes.putInt(4 * i, isNan ? Integer.MAX_VALUE : Float.floatToRawIntBits((float) value));
      case FLOAT16 ->
          bytes.putShort(2 * i, isNan ? Short.MAX_VALUE : Float.floatToFloat16((float) value));
      case BFLOAT16 -> {
        int bits = Float.floatToRawIntBits((float) value);
        int rounded = bits + 0x7fff + (bits >>> 16 & 1);
        bytes.putShort(2 * i, isNan ? Short.MAX_VALUE : (short) (rounded >>> 16));
      }
      default -> throw new IllegalArgumentException(dtype.label());
    }
  }

  private static void put(ByteBuffer bytes, DType dtype, int i, long value) {
    switch (dtype.byteSize()) {
      case 1 -> bytes.put(i, (byte) value);
      case 2 -> bytes.putShort(2 * i, (short) value);
      case 4 -> bytes.putInt(4 * i, (int) value);
      default -> bytes.putLong(8 * i, value);
    }
  }

  /**
   * Returns the places of the values that a rank contributes to a sparse sum, some of which may be
   * repeated.
   */
  int[] places(Step step, int rank, int range) {
    int[] places = new int[step.counts().get(rank)];
    for (int i = 0; i < places.length; i++) {
      places[i] = (int) Long.remainderUnsigned(mix(state(step, -1, rank) + i), range);
    }
    return places;
  }

  /** Returns the values that a rank contributes to a sparse sum. */
  long[] addends(Step step, int rank) {
    long[] values = new long[step.counts().get(rank)];
    for (int i = 0; i < values.length; i++) {
      values[i] = (mix(state(step, -2, rank) + i) >>> 1) % 3;
    }
    return values;
  }

  /**
   * Returns the sum of all ranks' contributions to a sparse sum, and how often each place is named.
   */
  long[][] sparseSum(Step step, int size, int range) {
    long[] sum = new long[range];
    long[] named = new long[range];
    for (int rank = 0; rank < size; rank++) {
      int[] places = places(step, rank, range);
      long[] addends = addends(step, rank);
      for (int i = 0; i < places.length; i++) {
        sum[places[i]] += addends[i];
        named[places[i]]++;
      }
    }
    return new long[][] {sum, named};
  }

  /** Returns the bytes of elements of a type that can hold small whole numbers. */
  static byte[] encoded(DType dtype, long[] values) {
    byte[] result = new byte[values.length * dtype.byteSize()];
    ByteBuffer bytes = over(result);
    for (int i = 0; i < values.length; i++) {
      if (isReal(dtype)) {
        put(bytes, dtype, i, (double) values[i]);
      } else {
        put(bytes, dtype, i, values[i]);
      }
    }
    return result;
  }

  /** Concatenates arrays. */
  static byte[] joined(byte[]... parts) {
    byte[] all = new byte[Arrays.stream(parts).mapToInt(part -> part.length).sum()];
    int at = 0;
    for (byte[] part : parts) {
      System.arraycopy(part, 0, all, at, part.length);
      at += part.length;
    }
    return all;
  }

  /** Returns a number, as from a die, that depends on the step and the place. */
  long die(Step step, int slot, int rank) {
    return mix(state(step, slot, rank) ^ 0x5bd1e995) >>> 1;
  }

  private long state(Step step, int slot, int rank) {
    return mix(mix(mix(seed) + step.id()) + slot * 1_000_003L) + rank * 0x1_0000_0000L;
  }

  /** Mixes the bits of a number, as splitmix64 does. */
  static long mix(long z) {
    z = (z + 0x9e3779b97f4a7c15L);
    z = (z ^ (z >>> 30)) * 0xbf58476d1ce4e5b9L;
    z = (z ^ (z >>> 27)) * 0x94d049bb133111ebL;
    return z ^ (z >>> 31);
  }
}
