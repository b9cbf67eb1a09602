package dev.tutti.state;

import dev.tutti.Tensor;
import java.util.Arrays;
import java.util.Objects;

/**
 * A range of the elements of one named tensor, which this rank holds.
 *
 * <p>The range is given in elements of the whole tensor in row-major order, never in units that
 * depend on the number of ranks or on buckets, so that other ranks can hold other ranges of the
 * same tensor later.
 */
public final class StatePart {
  private final String name;
  private final long[] wholeShape;
  private final long first;
  private final Tensor elements;

  /**
   * Creates a part.
   *
   * @param name the name of the whole tensor, the same on all ranks, such as {@code
   *     exp_avg/layer1.weight}
   * @param wholeShape the sizes of the whole tensor in elements, outermost first
   * @param first the position of the part's first element in the whole tensor, in row-major order
   * @param elements the elements of the part: contiguous, one-dimensional
   * @throws IllegalArgumentException if the elements are not contiguous and one-dimensional, or are
   *     not within the whole tensor
   */
  public StatePart(String name, long[] wholeShape, long first, Tensor elements) {
    this.name = Objects.requireNonNull(name, "name");
    this.wholeShape = wholeShape.clone();
    this.first = first;
    this.elements = elements;
    if (elements.dim() != 1 || !elements.isContiguous()) {
      throw new IllegalArgumentException(
          "part '%s' must be contiguous and one-dimensional, not %s"
              .formatted(name, elements.describe()));
    }
    long whole = 1;
    for (long size : wholeShape) {
      whole = Math.multiplyExact(whole, size);
    }
    if (first < 0 || first > whole - elements.numel()) {
      throw new IllegalArgumentException(
          "part '%s' has %d elements from %d on, but the whole has %d: shape %s"
              .formatted(name, elements.numel(), first, whole, Arrays.toString(wholeShape)));
    }
  }

  /** Returns the name of the whole tensor. */
  public String name() {
    return name;
  }

  /** Returns the sizes of the whole tensor in elements, outermost first. */
  public long[] wholeShape() {
    return wholeShape.clone();
  }

  /** Returns the position of the first element in the whole tensor, in row-major order. */
  public long first() {
    return first;
  }

  /** Returns the elements: contiguous, one-dimensional, in the memory of the object itself. */
  public Tensor elements() {
    return elements;
  }

  @Override
  public String toString() {
    return "%s[%d:%d] of %s"
        .formatted(name, first, first + elements.numel(), Arrays.toString(wholeShape));
  }
}
