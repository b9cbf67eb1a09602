package dev.tutti.cpu.reduce;

/**
 * The factor that the elements of a mean are multiplied by before they are added; their sum is
 * divided by the number of elements times this factor, which is more than 0.5 and at most 1. The
 * sum is at most as large as the largest element, so it does not overflow, and it has the bits of
 * the plain sum but for elements so small that scaling rounds them.
 */
public final class MeanScale {
  private MeanScale() {}

  /**
   * Returns the largest power of two that is at most 1 / the number of elements.
   *
   * @param count the number of elements, at least 1
   */
  public static double of(int count) {
    return Math.scalb(1.0, Integer.numberOfLeadingZeros(count - 1) - Integer.SIZE);
  }
}
