package dev.tutti.cpu.reduce;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.DType;
import org.junit.jupiter.api.Test;

class VectorLoopsTest {
  private static final int[] LOWER_HALVES = {0, 1, 0x7fff, 0x8000, 0x8001, 0xffff};

  @Test
  void everyFloatNearAHalfwayPointIsRoundedToBfloat16() {
    int[] lower = new int[1 << 16];
    int[] upper = new int[1 << 16];
    int[] pairs = new int[1 << 16];
    for (int low : LOWER_HALVES) {
      for (int i = 0; i < lower.length; i++) {
        lower[i] = (i << 16) | low;
        upper[lower.length - 1 - i] = lower[i];
      }
      VectorLoops.joinRounded(lower, upper, pairs, pairs.length);
      for (int i = 0; i < lower.length; i++) {
        assertRounded(lower[i], pairs[i] & 0xffff);
        assertRounded(upper[i], pairs[i] >>> 16);
      }
    }
  }

  @Test
  void everyHalfIsWidenedAndNarrowedToItself() {
    short[] halves = new short[1 << 16];
    short[] back = new short[1 << 16];
    float[] floats = new float[1 << 16];
    for (int i = 0; i < halves.length; i++) {
      halves[i] = (short) i;
    }
    VectorLoops.widen(halves, floats, halves.length);
    VectorLoops.narrow(floats, back, halves.length);
    for (int i = 0; i < halves.length; i++) {
      assertThat(Float.compare(floats[i], ScalarReduction.widen(DType.FLOAT16, i))).isZero();
      assertThat(ScalarReduction.same(DType.FLOAT16, i, back[i] & 0xffff)).isTrue();
    }
  }

  private static void assertRounded(int bits, int bfloat16) {
    long expected = ScalarReduction.narrow(DType.BFLOAT16, Float.intBitsToFloat(bits));
    if (!ScalarReduction.same(DType.BFLOAT16, bfloat16, expected)) {
      throw new AssertionError("%x became %x, expected %x".formatted(bits, bfloat16, expected));
    }
  }
}
