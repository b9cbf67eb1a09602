package dev.tutti.fake;

import static java.lang.foreign.ValueLayout.JAVA_FLOAT_UNALIGNED;
import static java.lang.foreign.ValueLayout.JAVA_SHORT_UNALIGNED;

import dev.tutti.DType;
import dev.tutti.spi.Elements;
import java.lang.foreign.MemorySegment;

/** Converts runs of 16-bit floating-point elements to float32 and back. */
final class Halves {
  private Halves() {}

  static boolean isHalf(DType dtype) {
    return dtype == DType.FLOAT16 || dtype == DType.BFLOAT16;
  }

  /** Widens elements, exactly. */
  static void widen(
      DType dtype, MemorySegment source, long sourceOffset, MemorySegment target, long count) {
    boolean ieee = dtype == DType.FLOAT16;
    for (long i = 0; i < count; i++) {
      short bits = source.get(JAVA_SHORT_UNALIGNED, sourceOffset + 2 * i);
      float value = ieee ? Float.float16ToFloat(bits) : Elements.bfloat16ToFloat(bits);
      target.set(JAVA_FLOAT_UNALIGNED, 4 * i, value);
    }
  }

  /** Rounds elements to nearest, ties to even. */
  static void narrow(
      DType dtype, MemorySegment source, MemorySegment target, long targetOffset, long count) {
    boolean ieee = dtype == DType.FLOAT16;
    for (long i = 0; i < count; i++) {
      float value = source.get(JAVA_FLOAT_UNALIGNED, 4 * i);
      short bits = ieee ? Float.floatToFloat16(value) : Elements.floatToBfloat16(value);
      target.set(JAVA_SHORT_UNALIGNED, targetOffset + 2 * i, bits);
    }
  }
}
