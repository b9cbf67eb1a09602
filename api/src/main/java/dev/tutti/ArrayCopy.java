package dev.tutti;

/**
 * Static methods that copy between host tensors and arrays, in bulk where the types are equal and
 * element by element otherwise.
 */
public final class ArrayCopy {
  private ArrayCopy() {}

  /** Copies a tensor to an array. */
  public static void copy(Tensor source, float[] target) {
    requireLength(source, target.length);
    if (source.dtype() == DType.FLOAT32) {
      Tensor.wrap(target).copyFrom(source);
      return;
    }
    for (int i = 0; i < target.length; i++) {
      target[i] = source.getFloat(i);
    }
  }

  /** Copies a tensor to an array. */
  public static void copy(Tensor source, double[] target) {
    requireLength(source, target.length);
    if (source.dtype() == DType.FLOAT64) {
      Tensor.wrap(target).copyFrom(source);
      return;
    }
    for (int i = 0; i < target.length; i++) {
      target[i] = source.getDouble(i);
    }
  }

  /** Copies a tensor to an array. */
  public static void copy(Tensor source, int[] target) {
    requireLength(source, target.length);
    if (source.dtype() == DType.INT64) {
      throw new IllegalStateException("int64 does not fit into int; use a long[]");
    }
    if (source.dtype() == DType.INT32) {
      Tensor.wrap(target).copyFrom(source);
      return;
    }
    for (int i = 0; i < target.length; i++) {
      target[i] = (int) source.getLong(i);
    }
  }

  /** Copies a tensor to an array. */
  public static void copy(Tensor source, long[] target) {
    requireLength(source, target.length);
    if (source.dtype() == DType.INT64) {
      Tensor.wrap(target).copyFrom(source);
      return;
    }
    for (int i = 0; i < target.length; i++) {
      target[i] = source.getLong(i);
    }
  }

  /** Copies an array to a tensor. */
  public static void copy(float[] source, Tensor target) {
    requireLength(target, source.length);
    if (target.dtype() == DType.FLOAT32) {
      target.copyFrom(Tensor.wrap(source));
      return;
    }
    for (int i = 0; i < source.length; i++) {
      target.setFloat(i, source[i]);
    }
  }

  /** Copies an array to a tensor. */
  public static void copy(double[] source, Tensor target) {
    requireLength(target, source.length);
    if (target.dtype() == DType.FLOAT64) {
      target.copyFrom(Tensor.wrap(source));
      return;
    }
    for (int i = 0; i < source.length; i++) {
      target.setDouble(i, source[i]);
    }
  }

  /** Copies an array to a tensor. */
  public static void copy(int[] source, Tensor target) {
    requireLength(target, source.length);
    if (target.dtype() == DType.INT32) {
      target.copyFrom(Tensor.wrap(source));
      return;
    }
    for (int i = 0; i < source.length; i++) {
      target.setLong(i, source[i]);
    }
  }

  /** Copies an array to a tensor. */
  public static void copy(long[] source, Tensor target) {
    requireLength(target, source.length);
    if (target.dtype() == DType.INT64) {
      target.copyFrom(Tensor.wrap(source));
      return;
    }
    for (int i = 0; i < source.length; i++) {
      target.setLong(i, source[i]);
    }
  }

  private static void requireLength(Tensor tensor, int length) {
    if (tensor.numel() != length) {
      throw new IllegalArgumentException(
          "the array has %d elements, but the tensor has %d: %s"
              .formatted(length, tensor.numel(), tensor.describe()));
    }
  }
}
