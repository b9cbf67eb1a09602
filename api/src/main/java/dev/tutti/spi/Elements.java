package dev.tutti.spi;

import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static java.lang.foreign.ValueLayout.JAVA_DOUBLE_UNALIGNED;
import static java.lang.foreign.ValueLayout.JAVA_FLOAT_UNALIGNED;
import static java.lang.foreign.ValueLayout.JAVA_INT_UNALIGNED;
import static java.lang.foreign.ValueLayout.JAVA_LONG_UNALIGNED;
import static java.lang.foreign.ValueLayout.JAVA_SHORT_UNALIGNED;

import dev.tutti.DType;
import java.lang.foreign.MemorySegment;

/** Static methods that read and write single elements of any type; not for hot loops. */
public final class Elements {
  private Elements() {}

  /** Reads the element at a byte offset as a double. */
  public static double getDouble(DType dtype, MemorySegment memory, long offset) {
    return switch (dtype) {
      case FLOAT32 -> memory.get(JAVA_FLOAT_UNALIGNED, offset);
      case FLOAT64 -> memory.get(JAVA_DOUBLE_UNALIGNED, offset);
      case FLOAT16 -> Float.float16ToFloat(memory.get(JAVA_SHORT_UNALIGNED, offset));
      case BFLOAT16 -> bfloat16ToFloat(memory.get(JAVA_SHORT_UNALIGNED, offset));
      default -> getLong(dtype, memory, offset);
    };
  }

  /**
   * Writes the element at a byte offset: rounded once to a floating-point type, truncated to an
   * integer type, or as true for BOOL unless it is zero.
   */
  public static void setDouble(DType dtype, MemorySegment memory, long offset, double value) {
    switch (dtype) {
      case FLOAT32 -> memory.set(JAVA_FLOAT_UNALIGNED, offset, (float) value);
      case FLOAT64 -> memory.set(JAVA_DOUBLE_UNALIGNED, offset, value);
      case FLOAT16 ->
          memory.set(JAVA_SHORT_UNALIGNED, offset, Float.floatToFloat16(roundToOdd(value)));
      case BFLOAT16 -> memory.set(JAVA_SHORT_UNALIGNED, offset, floatToBfloat16(roundToOdd(value)));
      case BOOL -> memory.set(JAVA_BYTE, offset, (byte) (value != 0 ? 1 : 0));
      default -> setLong(dtype, memory, offset, (long) value);
    }
  }

  /** Reads the integer or bool element at a byte offset. */
  public static long getLong(DType dtype, MemorySegment memory, long offset) {
    return switch (dtype) {
      case INT8 -> memory.get(JAVA_BYTE, offset);
      case UINT8, BOOL -> memory.get(JAVA_BYTE, offset) & 0xff;
      case INT16 -> memory.get(JAVA_SHORT_UNALIGNED, offset);
      case INT32 -> memory.get(JAVA_INT_UNALIGNED, offset);
      case INT64 -> memory.get(JAVA_LONG_UNALIGNED, offset);
      default -> throw refused(dtype);
    };
  }

  /** Writes the integer or bool element at a byte offset, keeping its low bits. */
  public static void setLong(DType dtype, MemorySegment memory, long offset, long value) {
    switch (dtype) {
      case INT8, UINT8 -> memory.set(JAVA_BYTE, offset, (byte) value);
      case BOOL -> memory.set(JAVA_BYTE, offset, (byte) (value != 0 ? 1 : 0));
      case INT16 -> memory.set(JAVA_SHORT_UNALIGNED, offset, (short) value);
      case INT32 -> memory.set(JAVA_INT_UNALIGNED, offset, (int) value);
      case INT64 -> memory.set(JAVA_LONG_UNALIGNED, offset, value);
      default -> throw refused(dtype);
    }
  }

  private static IllegalStateException refused(DType dtype) {
    String reason =
        dtype.isComplex()
            ? " has two numbers per element; use viewAsReal()"
            : dtype.isOpaque()
                ? " can be moved but not converted; view(DType.UINT8) gives its bytes"
                : " is not an integer type";
    return new IllegalStateException(dtype.label() + reason);
  }

  /**
   * Formats the element at a byte offset as text; an opaque element is shown as its byte in
   * hexadecimal.
   */
  public static String toString(DType dtype, MemorySegment memory, long offset) {
    if (dtype.isComplex()) {
      DType real = dtype.toReal();
      String imaginary = toString(real, memory, offset + real.byteSize());
      return "(" + toString(real, memory, offset) + ", " + imaginary + ")";
    }
    return switch (dtype) {
      case FLOAT64 -> Double.toString(getDouble(dtype, memory, offset));
      case FLOAT32, FLOAT16, BFLOAT16 -> Float.toString((float) getDouble(dtype, memory, offset));
      case BOOL -> Boolean.toString(getLong(dtype, memory, offset) != 0);
      default ->
          dtype.isOpaque()
              ? String.format("0x%02x", memory.get(JAVA_BYTE, offset))
              : Long.toString(getLong(dtype, memory, offset));
    };
  }

  /**
   * Narrows a double to float by rounding to odd: an inexact result is the adjacent float whose
   * last bit is 1. A second rounding, to a shorter type, then gives the same result as a single
   * rounding would.
   */
  public static float roundToOdd(double value) {
    float nearest = (float) value;
    if (nearest == value || Float.isNaN(nearest)) {
      return nearest;
    }
    float below = Math.abs((double) nearest) > Math.abs(value) ? towardZero(nearest) : nearest;
    return Float.intBitsToFloat(Float.floatToRawIntBits(below) | 1);
  }

  private static float towardZero(float value) {
    return Float.intBitsToFloat(Float.floatToRawIntBits(value) - 1);
  }

  /** Widens a bfloat16, exactly. */
  public static float bfloat16ToFloat(short bits) {
    return Float.intBitsToFloat(bits << 16);
  }

  /** Rounds a float to the nearest bfloat16, ties to even; a NaN stays a quiet NaN. */
  public static short floatToBfloat16(float value) {
    int bits = Float.floatToRawIntBits(value);
    if (Float.isNaN(value)) {
      return (short) ((bits >>> 16) | 0x40);
    }
    return (short) ((bits + 0x7fff + ((bits >>> 16) & 1)) >>> 16);
  }
}
