package dev.tutti.cpu.reduce;

import dev.tutti.DType;
import dev.tutti.ReduceOp;

/**
 * Loops over arrays that the compiler turns into vector code. Arrays have at least 16 elements;
 * those beyond {@code count} may be written.
 */
final class VectorLoops {
  /*
   * The shape of these loops is determined by what HotSpot of JDK 25 vectorizes: arithmetic on
   * bytes and shorts as such, but neither their minimum nor their conversion to ints; Math.min of
   * ints, longs and floats; no selection between floats by a comparison. Minima of bytes and shorts
   * are therefore computed for eight or four at a time in a long, by plain arithmetic.
   *
   * HotSpot also shapes a loop by how many iterations it ran while it was profiled: a loop that saw
   * only single elements is compiled to scalar code for good, and is five times slower when long
   * runs follow. No loop therefore runs fewer than SHORTEST iterations: all arrays have that many
   * elements, and those beyond the last are ignored. Runs in buffers that are shorter than this are
   * not added here, see ViewedBlock.
   */
  static final int SHORTEST = 16;

  private static final long BYTE_TOPS = 0x8080_8080_8080_8080L;
  private static final long SHORT_TOPS = 0x8000_8000_8000_8000L;
  private static final long BYTE_ONES = 0x0101_0101_0101_0101L;

  private VectorLoops() {}

  static void reduce(ReduceOp.Kind kind, float[] a, float[] b, int count) {
    int n = atLeastShortest(count);
    switch (kind) {
      case SUM, AVG, PREMUL_SUM -> {
        for (int i = 0; i < n; i++) {
          a[i] += b[i];
        }
      }
      case PRODUCT -> {
        for (int i = 0; i < n; i++) {
          a[i] *= b[i];
        }
      }
      case MIN -> {
        for (int i = 0; i < n; i++) {
          a[i] = Math.min(a[i], b[i]);
        }
      }
      case MAX -> {
        for (int i = 0; i < n; i++) {
          a[i] = Math.max(a[i], b[i]);
        }
      }
      default -> throw notDefined(kind);
    }
  }

  static void reduce(ReduceOp.Kind kind, double[] a, double[] b, int count) {
    int n = atLeastShortest(count);
    switch (kind) {
      case SUM, AVG, PREMUL_SUM -> {
        for (int i = 0; i < n; i++) {
          a[i] += b[i];
        }
      }
      case PRODUCT -> {
        for (int i = 0; i < n; i++) {
          a[i] *= b[i];
        }
      }
      case MIN -> {
        for (int i = 0; i < n; i++) {
          a[i] = Math.min(a[i], b[i]);
        }
      }
      case MAX -> {
        for (int i = 0; i < n; i++) {
          a[i] = Math.max(a[i], b[i]);
        }
      }
      default -> throw notDefined(kind);
    }
  }

  /** Adds the products of elements and a factor. */
  static void addScaled(float[] a, float[] b, float factor, int count) {
    int n = atLeastShortest(count);
    for (int i = 0; i < n; i++) {
      a[i] += b[i] * factor;
    }
  }

  /** Adds the products of elements and a factor. */
  static void addScaled(double[] a, double[] b, double factor, int count) {
    int n = atLeastShortest(count);
    for (int i = 0; i < n; i++) {
      a[i] += b[i] * factor;
    }
  }

  /** Multiplies elements by a factor. */
  static void scale(float[] a, float factor, int count) {
    int n = atLeastShortest(count);
    for (int i = 0; i < n; i++) {
      a[i] *= factor;
    }
  }

  /** Multiplies elements by a factor. */
  static void scale(double[] a, double factor, int count) {
    int n = atLeastShortest(count);
    for (int i = 0; i < n; i++) {
      a[i] *= factor;
    }
  }

  /** Divides elements by a divisor. */
  static void divide(float[] a, float divisor, int count) {
    int n = atLeastShortest(count);
    for (int i = 0; i < n; i++) {
      a[i] /= divisor;
    }
  }

  /** Divides elements by a divisor. */
  static void divide(double[] a, double divisor, int count) {
    int n = atLeastShortest(count);
    for (int i = 0; i < n; i++) {
      a[i] /= divisor;
    }
  }

  static void reduce(ReduceOp.Kind kind, int[] a, int[] b, int count) {
    int n = atLeastShortest(count);
    switch (kind) {
      case SUM, AVG -> {
        for (int i = 0; i < n; i++) {
          a[i] += b[i];
        }
      }
      case PRODUCT -> {
        for (int i = 0; i < n; i++) {
          a[i] *= b[i];
        }
      }
      case MIN -> {
        for (int i = 0; i < n; i++) {
          a[i] = Math.min(a[i], b[i]);
        }
      }
      case MAX -> {
        for (int i = 0; i < n; i++) {
          a[i] = Math.max(a[i], b[i]);
        }
      }
      case BAND -> {
        for (int i = 0; i < n; i++) {
          a[i] &= b[i];
        }
      }
      case BOR -> {
        for (int i = 0; i < n; i++) {
          a[i] |= b[i];
        }
      }
      case BXOR -> {
        for (int i = 0; i < n; i++) {
          a[i] ^= b[i];
        }
      }
      default -> throw notDefined(kind);
    }
  }

  static void reduce(ReduceOp.Kind kind, long[] a, long[] b, int count) {
    int n = atLeastShortest(count);
    switch (kind) {
      case SUM, AVG -> {
        for (int i = 0; i < n; i++) {
          a[i] += b[i];
        }
      }
      case PRODUCT -> {
        for (int i = 0; i < n; i++) {
          a[i] *= b[i];
        }
      }
      case MIN -> {
        for (int i = 0; i < n; i++) {
          a[i] = Math.min(a[i], b[i]);
        }
      }
      case MAX -> {
        for (int i = 0; i < n; i++) {
          a[i] = Math.max(a[i], b[i]);
        }
      }
      case BAND -> {
        for (int i = 0; i < n; i++) {
          a[i] &= b[i];
        }
      }
      case BOR -> {
        for (int i = 0; i < n; i++) {
          a[i] |= b[i];
        }
      }
      case BXOR -> {
        for (int i = 0; i < n; i++) {
          a[i] ^= b[i];
        }
      }
      default -> throw notDefined(kind);
    }
  }

  /** Adds or multiplies; the low bits are the same for either signedness. */
  static void reduce(ReduceOp.Kind kind, short[] a, short[] b, int count) {
    int n = atLeastShortest(count);
    if (kind == ReduceOp.Kind.PRODUCT) {
      for (int i = 0; i < n; i++) {
        a[i] = (short) (a[i] * b[i]);
      }
    } else {
      for (int i = 0; i < n; i++) {
        a[i] = (short) (a[i] + b[i]);
      }
    }
  }

  /** Adds or multiplies; the low bits are the same for either signedness. */
  static void reduce(ReduceOp.Kind kind, byte[] a, byte[] b, int count) {
    int n = atLeastShortest(count);
    if (kind == ReduceOp.Kind.PRODUCT) {
      for (int i = 0; i < n; i++) {
        a[i] = (byte) (a[i] * b[i]);
      }
    } else {
      for (int i = 0; i < n; i++) {
        a[i] = (byte) (a[i] + b[i]);
      }
    }
  }

  /**
   * Reduces bytes or shorts that are packed in longs: booleans with all operators, integers with
   * MIN, MAX and the bitwise operators.
   */
  static void reducePacked(ReduceOp.Kind kind, DType dtype, long[] a, long[] b, int n) {
    if (dtype == DType.BOOL) {
      toZeroOrOne(a, n);
      toZeroOrOne(b, n);
      reduce(bitwise(kind), a, b, n);
    } else if (kind == ReduceOp.Kind.MIN || kind == ReduceOp.Kind.MAX) {
      long tops = dtype == DType.INT16 ? SHORT_TOPS : BYTE_TOPS;
      // Signed order is unsigned order with the top bits flipped, and a maximum is the minimum of
      // the complements.
      long flip = (dtype == DType.UINT8 ? 0 : tops) ^ (kind == ReduceOp.Kind.MAX ? -1 : 0);
      packedMin(a, b, n, tops, dtype == DType.INT16 ? 15 : 7, flip);
    } else {
      reduce(kind, a, b, n);
    }
  }

  private static ReduceOp.Kind bitwise(ReduceOp.Kind kind) {
    return switch (kind) {
      case PRODUCT, MIN, BAND -> ReduceOp.Kind.BAND;
      case BXOR -> ReduceOp.Kind.BXOR;
      default -> ReduceOp.Kind.BOR;
    };
  }

  private static void toZeroOrOne(long[] a, int count) {
    int n = atLeastShortest(count);
    for (int i = 0; i < n; i++) {
      long x = a[i];
      a[i] = ((((x & ~BYTE_TOPS) + ~BYTE_TOPS) | x) >>> 7) & BYTE_ONES;
    }
  }

  private static void packedMin(long[] a, long[] b, int count, long tops, int topBit, long flip) {
    int n = atLeastShortest(count);
    for (int i = 0; i < n; i++) {
      long x = a[i] ^ flip;
      long y = b[i] ^ flip;
      // For each part: y - x without borrows across parts, then the borrow out of its top bit.
      long difference = ((y | tops) - (x & ~tops)) ^ (~(y ^ x) & tops);
      long less = ((~y & x) | (~(y ^ x) & difference)) & tops;
      long mask = (less << 1) - (less >>> topBit);
      a[i] = x ^ ((x ^ y) & mask) ^ flip;
    }
  }

  /** Widens halves to floats. */
  static void widen(short[] halves, float[] floats, int count) {
    int n = atLeastShortest(count);
    for (int i = 0; i < n; i++) {
      floats[i] = Float.float16ToFloat(halves[i]);
    }
  }

  /** Rounds floats to halves. */
  static void narrow(float[] floats, short[] halves, int count) {
    int n = atLeastShortest(count);
    for (int i = 0; i < n; i++) {
      halves[i] = Float.floatToFloat16(floats[i]);
    }
  }

  /** Splits pairs of bfloat16 into the bits of floats. */
  static void split(int[] pairs, int[] lower, int[] upper, int count) {
    int n = atLeastShortest(count);
    for (int i = 0; i < n; i++) {
      lower[i] = pairs[i] << 16;
      upper[i] = pairs[i] & 0xffff_0000;
    }
  }

  /** Rounds the bits of floats to bfloat16, and joins pairs. */
  static void joinRounded(int[] lower, int[] upper, int[] pairs, int count) {
    int n = atLeastShortest(count);
    for (int i = 0; i < n; i++) {
      pairs[i] = (rounded(lower[i]) >>> 16) | (rounded(upper[i]) & 0xffff_0000);
    }
  }

  /** Rounds to nearest, ties to even, in the upper 16 bits; makes NaNs quiet, without a branch. */
  private static int rounded(int bits) {
    int nan = (0x7f80_0000 - (bits & 0x7fff_ffff)) >> 31;
    int nearest = bits + 0x7fff + ((bits >>> 16) & 1);
    return (nearest & ~nan) | ((bits | 0x0040_0000) & nan);
  }

  static int atLeastShortest(int count) {
    return Math.max(count, SHORTEST);
  }

  private static IllegalArgumentException notDefined(ReduceOp.Kind kind) {
    return new IllegalArgumentException(kind + " is not defined on these elements");
  }
}
