package dev.tutti.gradients.hook;

import static java.lang.foreign.ValueLayout.JAVA_DOUBLE_UNALIGNED;
import static java.lang.foreign.ValueLayout.JAVA_FLOAT_UNALIGNED;
import static java.lang.foreign.ValueLayout.JAVA_SHORT_UNALIGNED;

import dev.tutti.DType;
import dev.tutti.Tensor;
import dev.tutti.spi.Elements;
import java.lang.foreign.MemorySegment;

/** A converter between float32 or float64 and a 16-bit type, in host memory. Not thread-safe. */
final class HalfConversion {
  /*
   * Elements pass through arrays, in blocks that stay in the first-level cache, since loops over
   * arrays are what HotSpot vectorizes: float16 with the processor's own conversion, bfloat16 with
   * branch-free integer arithmetic. A float64 is first rounded to odd, so that the second rounding
   * gives what a single one would. Each loop runs over a whole block, even for the last one;
   * elements past the end are not copied back.
   */
  private static final int BLOCK = 2048;

  private final boolean isBfloat16;
  private final float[] floats = new float[BLOCK];
  private final double[] doubles = new double[BLOCK];
  private final short[] halves = new short[BLOCK];

  /**
   * Creates a conversion.
   *
   * @param half the 16-bit type, {@link DType#FLOAT16} or {@link DType#BFLOAT16}
   */
  HalfConversion(DType half) {
    isBfloat16 = half == DType.BFLOAT16;
  }

  /** Rounds each element to nearest, ties to even. */
  void narrow(Tensor source, Tensor half) {
    MemorySegment from = source.segment();
    MemorySegment to = half.segment();
    for (long start = 0; start < source.numel(); start += BLOCK) {
      int count = (int) Math.min(BLOCK, source.numel() - start);
      if (source.dtype() == DType.FLOAT64) {
        MemorySegment.copy(from, JAVA_DOUBLE_UNALIGNED, start * 8, doubles, 0, count);
        toFloats(doubles, floats);
      } else {
        MemorySegment.copy(from, JAVA_FLOAT_UNALIGNED, start * 4, floats, 0, count);
      }
      if (isBfloat16) {
        toBfloat16(floats, halves);
      } else {
        toFloat16(floats, halves);
      }
      MemorySegment.copy(halves, 0, to, JAVA_SHORT_UNALIGNED, start * 2, count);
    }
  }

  /** Widens each element, exactly. */
  void widen(Tensor half, Tensor target) {
    MemorySegment from = half.segment();
    MemorySegment to = target.segment();
    for (long start = 0; start < target.numel(); start += BLOCK) {
      int count = (int) Math.min(BLOCK, target.numel() - start);
      MemorySegment.copy(from, JAVA_SHORT_UNALIGNED, start * 2, halves, 0, count);
      if (isBfloat16) {
        ofBfloat16(halves, floats);
      } else {
        ofFloat16(halves, floats);
      }
      if (target.dtype() == DType.FLOAT64) {
        toDoubles(floats, doubles);
        MemorySegment.copy(doubles, 0, to, JAVA_DOUBLE_UNALIGNED, start * 8, count);
      } else {
        MemorySegment.copy(floats, 0, to, JAVA_FLOAT_UNALIGNED, start * 4, count);
      }
    }
  }

  private static void toFloats(double[] from, float[] to) {
    for (int i = 0; i < BLOCK; i++) {
      to[i] = Elements.roundToOdd(from[i]);
    }
  }

  private static void toDoubles(float[] from, double[] to) {
    for (int i = 0; i < BLOCK; i++) {
      to[i] = from[i];
    }
  }

  private static void toFloat16(float[] from, short[] to) {
    for (int i = 0; i < BLOCK; i++) {
      to[i] = Float.floatToFloat16(from[i]);
    }
  }

  private static void ofFloat16(short[] from, float[] to) {
    for (int i = 0; i < BLOCK; i++) {
      to[i] = Float.float16ToFloat(from[i]);
    }
  }

  private static void toBfloat16(float[] from, short[] to) {
    for (int i = 0; i < BLOCK; i++) {
      int bits = Float.floatToRawIntBits(from[i]);
      int nan = (0x7f80_0000 - (bits & 0x7fff_ffff)) >> 31;
      int rounded = (bits + 0x7fff + ((bits >>> 16) & 1)) >>> 16;
      int quiet = (bits >>> 16) | 0x40;
      to[i] = (short) ((rounded & ~nan) | (quiet & nan));
    }
  }

  private static void ofBfloat16(short[] from, float[] to) {
    for (int i = 0; i < BLOCK; i++) {
      to[i] = Float.intBitsToFloat(from[i] << 16);
    }
  }
}
