package dev.tutti.checkpoint.format;

import java.util.Arrays;
import java.util.List;

/**
 * The sizes of a tensor.
 *
 * @param sizes the sizes in elements, outermost first; none for a scalar
 */
public record Shape(List<Long> sizes) {
  /** Copies the list. */
  public Shape {
    sizes = List.copyOf(sizes);
  }

  /** Returns the shape with the given sizes. */
  public static Shape of(long... sizes) {
    return new Shape(Arrays.stream(sizes).boxed().toList());
  }

  /**
   * Returns the number of elements, times a factor.
   *
   * @throws ArithmeticException if it needs more than 63 bits
   */
  public long times(long factor) {
    return sizes.stream().reduce(factor, Math::multiplyExact);
  }

  @Override
  public String toString() {
    return sizes.toString();
  }
}
