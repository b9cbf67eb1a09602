package dev.tutti.gradients.hook;

/** Loops over arrays of float32 that the compiler vectorizes. */
final class MatrixLoops {
  /*
   * HotSpot keeps the order of a float sum and so does not vectorize it. The dot product therefore
   * has eight independent sums.
   */
  private MatrixLoops() {}

  /** Computes {@code target[start + i] += factor * source[from + i]}. */
  static void addScaled(
      float[] target, int start, float[] source, int from, float factor, int count) {
    for (int i = 0; i < count; i++) {
      target[start + i] += factor * source[from + i];
    }
  }

  /** Adds an error to a row. */
  static void addTo(float[] error, int start, float[] row, int count) {
    for (int i = 0; i < count; i++) {
      row[i] += error[start + i];
    }
  }

  /** Computes {@code target[start + i] = a[i] - b[i]}. */
  static void subtract(float[] a, float[] b, float[] target, int start, int count) {
    for (int i = 0; i < count; i++) {
      target[start + i] = a[i] - b[i];
    }
  }

  /** Returns the sum of {@code a[i] * b[start + i]}. */
  static float dot(float[] a, float[] b, int start, int count) {
    float s0 = 0;
    float s1 = 0;
    float s2 = 0;
    float s3 = 0;
    float s4 = 0;
    float s5 = 0;
    float s6 = 0;
    float s7 = 0;
    int whole = count - count % 8;
    for (int i = 0; i < whole; i += 8) {
      s0 += a[i] * b[start + i];
      s1 += a[i + 1] * b[start + i + 1];
      s2 += a[i + 2] * b[start + i + 2];
      s3 += a[i + 3] * b[start + i + 3];
      s4 += a[i + 4] * b[start + i + 4];
      s5 += a[i + 5] * b[start + i + 5];
      s6 += a[i + 6] * b[start + i + 6];
      s7 += a[i + 7] * b[start + i + 7];
    }
    for (int i = whole; i < count; i++) {
      s0 += a[i] * b[start + i];
    }
    return ((s0 + s4) + (s1 + s5)) + ((s2 + s6) + (s3 + s7));
  }

  static boolean isZero(float[] a, int start, int count) {
    for (int i = 0; i < count; i++) {
      if (a[start + i] != 0) {
        return false;
      }
    }
    return true;
  }

  /**
   * Makes columns orthonormal, one after another (modified Gram-Schmidt). A column of zeros stays
   * zero.
   *
   * @param columns the columns, one after another
   * @param count the number of columns
   * @param length the number of elements of each column
   * @param epsilon the number added to each norm before the division
   */
  static void orthonormalize(float[] columns, int count, int length, double epsilon) {
    for (int k = 0; k < count; k++) {
      int start = k * length;
      double norm = Math.sqrt(product(columns, start, start, length)) + epsilon;
      scale(columns, start, norm == 0 ? 0 : 1 / norm, length);
      for (int other = k + 1; other < count; other++) {
        float overlap = (float) product(columns, start, other * length, length);
        addScaled(columns, other * length, columns, start, -overlap, length);
      }
    }
  }

  private static double product(float[] all, int a, int b, int length) {
    double sum = 0;
    for (int i = 0; i < length; i++) {
      sum += (double) all[a + i] * all[b + i];
    }
    return sum;
  }

  private static void scale(float[] all, int start, double factor, int length) {
    for (int i = 0; i < length; i++) {
      all[start + i] = (float) (all[start + i] * factor);
    }
  }
}
