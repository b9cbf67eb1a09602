package dev.tutti;

import java.util.Arrays;

/** The arithmetic of shapes and strides. */
final class Shapes {
  private Shapes() {}

  /**
   * Returns the number of elements.
   *
   * @throws IllegalArgumentException if a size is negative, or there are too many
   */
  static long numel(long[] shape) {
    boolean empty = false;
    for (long size : shape) {
      if (size < 0) {
        throw new IllegalArgumentException("negative size in shape " + Arrays.toString(shape));
      }
      empty |= size == 0;
    }
    if (empty) {
      return 0;
    }
    try {
      long numel = 1;
      for (long size : shape) {
        numel = Math.multiplyExact(numel, size);
      }
      return numel;
    } catch (ArithmeticException e) {
      throw new IllegalArgumentException("too many elements: " + Arrays.toString(shape), e);
    }
  }

  /** Returns the strides of a tensor whose elements follow one another, in elements. */
  static long[] denseStrides(long[] shape) {
    long[] strides = new long[shape.length];
    long stride = 1;
    for (int d = shape.length - 1; d >= 0; d--) {
      strides[d] = stride;
      stride *= Math.max(1, shape[d]);
    }
    return strides;
  }

  /** Returns whether the elements follow one another. */
  static boolean isDense(long[] shape, long[] strides) {
    long expected = 1;
    for (int d = shape.length - 1; d >= 0; d--) {
      if (shape[d] == 0) {
        return true;
      }
    }
    for (int d = shape.length - 1; d >= 0; d--) {
      if (shape[d] != 1 && strides[d] != expected) {
        return false;
      }
      expected *= shape[d];
    }
    return true;
  }

  /**
   * Returns how many elements of memory a tensor with elements reaches over.
   *
   * @throws IllegalArgumentException if the number needs more than 63 bits
   */
  static long extent(long[] shape, long[] strides) {
    try {
      long last = 0;
      for (int d = 0; d < shape.length; d++) {
        last = Math.addExact(last, Math.multiplyExact(shape[d] - 1, strides[d]));
      }
      return Math.addExact(last, 1);
    } catch (ArithmeticException e) {
      throw new IllegalArgumentException(
          "strides "
              + Arrays.toString(strides)
              + " of shape "
              + Arrays.toString(shape)
              + " exceed the range of a 64-bit offset",
          e);
    }
  }

  /** Returns the values without the one at an index. */
  static long[] without(long[] values, int index) {
    long[] rest = new long[values.length - 1];
    System.arraycopy(values, 0, rest, 0, index);
    System.arraycopy(values, index + 1, rest, index, rest.length - index);
    return rest;
  }
}
