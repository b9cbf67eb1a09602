package dev.tutti.cpu.reduce;

/**
 * What the mean of a number of elements is computed with: each one is multiplied by {@code scale},
 * a power of two, and their sum is divided by {@code divisor}. The sum is at most as large as the
 * largest element, so it does not overflow, and it has the bits of the plain sum but for elements
 * so small that scaling rounds them.
 *
 * @param scale the largest power of two that is at most 1 / the number of elements
 * @param divisor the number of elements times {@code scale}, more than 0.5 and at most 1
 */
public record MeanScale(double scale, double divisor) {
  /**
   * Computes the scale.
   *
   * @param count the number of elements, at least 1
   */
  public static MeanScale of(int count) {
    double scale = Math.scalb(1.0, Integer.numberOfLeadingZeros(count - 1) - Integer.SIZE);
    return new MeanScale(scale, count * scale);
  }
}
