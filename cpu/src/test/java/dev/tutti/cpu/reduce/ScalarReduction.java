package dev.tutti.cpu.reduce;

import dev.tutti.DType;
import dev.tutti.ReduceOp;
import java.math.BigInteger;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;

/** A straightforward reduction, one element at a time; it shares no code with what it checks. */
public final class ScalarReduction {
  private ScalarReduction() {}

  /** Returns the bits of {@code a op b}, both given as bits. */
  public static long combine(ReduceOp.Kind kind, DType dtype, long a, long b) {
    return switch (dtype) {
      case FLOAT64 ->
          Double.doubleToRawLongBits(
              doubles(kind, Double.longBitsToDouble(a), Double.longBitsToDouble(b)));
      case FLOAT32, FLOAT16, BFLOAT16 ->
          narrow(dtype, floats(kind, widen(dtype, a), widen(dtype, b)));
      case BOOL -> bools(kind, a != 0, b != 0) ? 1 : 0;
      default -> integers(kind, signed(dtype, a), signed(dtype, b)) & mask(dtype);
    };
  }

  /** Returns whether two bit patterns are the same number; all NaNs count as one. */
  public static boolean same(DType dtype, long a, long b) {
    if (dtype == DType.FLOAT64) {
      return a == b
          || (Double.isNaN(Double.longBitsToDouble(a)) && Double.isNaN(Double.longBitsToDouble(b)));
    }
    return a == b
        || (dtype.isFloatingPoint()
            && Float.isNaN(widen(dtype, a))
            && Float.isNaN(widen(dtype, b)));
  }

  private static double doubles(ReduceOp.Kind kind, double a, double b) {
    return switch (kind) {
      case SUM, AVG, PREMUL_SUM -> a + b;
      case PRODUCT -> a * b;
      case MIN, MAX -> extreme(kind, a, b);
      default -> throw new AssertionError(kind);
    };
  }

  /** Takes a NaN to be beyond all numbers, and -0 to be less than +0. */
  private static double extreme(ReduceOp.Kind kind, double a, double b) {
    if (Double.isNaN(a) || Double.isNaN(b)) {
      return Double.NaN;
    }
    return Double.compare(a, b) < 0 == (kind == ReduceOp.Kind.MIN) ? a : b;
  }

  public static float floats(ReduceOp.Kind kind, float a, float b) {
    return switch (kind) {
      case SUM, AVG, PREMUL_SUM -> a + b;
      case PRODUCT -> a * b;
      case MIN, MAX -> (float) extreme(kind, a, b);
      default -> throw new AssertionError(kind);
    };
  }

  private static boolean bools(ReduceOp.Kind kind, boolean a, boolean b) {
    return switch (kind) {
      case SUM, MAX, BOR -> a || b;
      case PRODUCT, MIN, BAND -> a && b;
      case BXOR -> a != b;
      default -> throw new AssertionError(kind);
    };
  }

  private static long integers(ReduceOp.Kind kind, long a, long b) {
    BigInteger x = BigInteger.valueOf(a);
    BigInteger y = BigInteger.valueOf(b);
    BigInteger exact =
        switch (kind) {
          case SUM, AVG -> x.add(y);
          case PRODUCT -> x.multiply(y);
          case MIN -> x.min(y);
          case MAX -> x.max(y);
          case BAND -> x.and(y);
          case BOR -> x.or(y);
          case BXOR -> x.xor(y);
          default -> throw new AssertionError(kind);
        };
    return exact.longValue();
  }

  /** Returns the value of an integer's bits. */
  public static long signed(DType dtype, long bits) {
    return switch (dtype) {
      case INT8 -> (byte) bits;
      case INT16 -> (short) bits;
      case INT32 -> (int) bits;
      default -> bits;
    };
  }

  static long mask(DType dtype) {
    return dtype.byteSize() == 8 ? -1L : (1L << (dtype.byteSize() * 8)) - 1;
  }

  /** Returns the value of the bits of a floating-point type of at most 32 bits. */
  public static float widen(DType dtype, long bits) {
    if (dtype == DType.FLOAT32) {
      return Float.intBitsToFloat((int) bits);
    }
    int fractionBits = dtype == DType.FLOAT16 ? 10 : 7;
    int exponentBits = 15 - fractionBits;
    int sign = (bits & 0x8000) != 0 ? -1 : 1;
    int exponent = (int) (bits & 0x7fff) >> fractionBits;
    int fraction = (int) bits & ((1 << fractionBits) - 1);
    int bias = (1 << (exponentBits - 1)) - 1;
    if (exponent == (1 << exponentBits) - 1) {
      return fraction != 0 ? Float.NaN : sign * Float.POSITIVE_INFINITY;
    }
    double magnitude =
        exponent == 0
            ? Math.scalb((double) fraction, 1 - bias - fractionBits)
            : Math.scalb((double) (1 << fractionBits) + fraction, exponent - bias - fractionBits);
    return (float) (sign * magnitude);
  }

  /** Returns the bits of a value rounded to nearest, ties to even, by exact comparison. */
  public static long narrow(DType dtype, double value) {
    if (dtype == DType.FLOAT32) {
      return Float.floatToRawIntBits((float) value) & 0xffff_ffffL;
    }
    long infinity = dtype == DType.FLOAT16 ? 0x7c00 : 0x7f80;
    if (Double.isNaN(value)) {
      return infinity | 1;
    }
    long sign = Double.doubleToRawLongBits(value) < 0 ? 0x8000 : 0;
    double magnitude = Math.abs(value);
    if (Double.isInfinite(magnitude)) {
      return sign | infinity;
    }
    // Finds the greatest pattern not above the magnitude; patterns are in the order of their
    // values.
    long low = 0;
    long high = infinity;
    while (high - low > 1) {
      long middle = (low + high) >>> 1;
      if (widen(dtype, middle) <= magnitude) {
        low = middle;
      } else {
        high = middle;
      }
    }
    // Beyond the greatest number, the next one would be a power of two.
    double next =
        high < infinity
            ? widen(dtype, high)
            : widen(dtype, low) + ((double) widen(dtype, low) - widen(dtype, low - 1));
    double middle = (widen(dtype, low) + next) / 2; // exact, as both have few bits
    boolean up = magnitude > middle || (magnitude == middle && (low & 1) == 1);
    return sign | (up ? high : low);
  }

  /** Reads the bits of an element. */
  public static long bits(DType dtype, byte[] memory, int offset) {
    ByteBuffer buffer = ByteBuffer.wrap(memory).order(ByteOrder.nativeOrder());
    return switch (dtype.byteSize()) {
      case 1 -> memory[offset] & 0xff;
      case 2 -> buffer.getShort(offset) & 0xffff;
      case 4 -> buffer.getInt(offset) & 0xffff_ffffL;
      default -> buffer.getLong(offset);
    };
  }
}
