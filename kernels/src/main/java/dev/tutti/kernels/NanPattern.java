package dev.tutti.kernels;

import dev.tutti.DType;
import org.jspecify.annotations.Nullable;

/**
 * The bits of the NaNs of a type: an element is NaN if {@code (bits ^ flip) & mask}, as an unsigned
 * number, is larger than {@code limit}.
 *
 * @param unit the size of a real number of the type in bytes
 * @param flip the bits to invert
 * @param mask the bits to compare
 * @param limit the largest number that is not NaN
 */
public record NanPattern(int unit, long flip, long mask, long limit) {
  /**
   * Returns the pattern of a type, for a complex type that of its parts, or null if the type has no
   * NaN.
   *
   * @param dtype the element type
   */
  public static @Nullable NanPattern of(DType dtype) {
    return switch (dtype) {
      case FLOAT32, COMPLEX64 -> ieee(4, 0x7fff_ffffL, 0x7f80_0000L);
      case FLOAT64, COMPLEX128 -> ieee(8, Long.MAX_VALUE, 0x7ff0_0000_0000_0000L);
      case FLOAT16 -> ieee(2, 0x7fff, 0x7c00);
      case BFLOAT16 -> ieee(2, 0x7fff, 0x7f80);
      case FLOAT8_E4M3FN -> ieee(1, 0x7f, 0x7e);
      case FLOAT8_E5M2 -> ieee(1, 0x7f, 0x7c);
      // The only NaN has the bits of -0; inverted below the sign, it is the largest number.
      case FLOAT8_E4M3FNUZ, FLOAT8_E5M2FNUZ -> new NanPattern(1, 0x7f, 0xff, 0xfe);
      case INT8, UINT8, BOOL, INT16, INT32, INT64 -> null;
    };
  }

  private static NanPattern ieee(int unit, long magnitude, long limit) {
    return new NanPattern(unit, 0, magnitude, limit);
  }
}
