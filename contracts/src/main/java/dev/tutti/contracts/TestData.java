package dev.tutti.contracts;

import dev.tutti.DType;
import dev.tutti.ReduceOp;
import java.util.Arrays;
import java.util.SplittableRandom;

/** The elements of test tensors: the same in every run, different on every rank. */
final class TestData {
  private static final double[] FACTORS = {1, -0.5, 2, 0.5};

  private TestData() {}

  /** Returns how many real numbers make up the given number of elements of a type. */
  static int reals(DType dtype, long numel) {
    return Math.toIntExact(dtype.isComplex() ? numel * 2 : numel);
  }

  /** Returns the number of elements of a shape. */
  static long numel(long... shape) {
    return Arrays.stream(shape).reduce(1, (a, b) -> a * b);
  }

  /** Creates elements that a type represents exactly, for operations that only move them. */
  static double[] toMove(DType dtype, int rank, long seed, long numel) {
    double[] values = new double[reals(dtype, numel)];
    SplittableRandom random = random(seed, rank);
    for (int i = 0; i < values.length; i++) {
      values[i] = wholeNumber(dtype, random, dtype.isOpaque() ? 255 : 127);
    }
    return values;
  }

  /**
   * Creates elements whose reduction is exact in a type, for any order of the ranks: whole numbers
   * so small that no intermediate result is rounded or wraps, and, if {@code hasExtremes}, among
   * them numbers whose mean is next to the limits of the type but whose sum is not within them, and
   * NaN for MIN and MAX.
   */
  static double[] toReduce(
      DType dtype,
      ReduceOp.Kind kind,
      int size,
      int rank,
      long seed,
      long numel,
      boolean hasExtremes) {
    double[] values = new double[reals(dtype, numel)];
    SplittableRandom random = random(seed, rank);
    for (int i = 0; i < values.length; i++) {
      values[i] =
          switch (kind) {
            case SUM -> wholeNumber(dtype, random, Math.max(1, 127 / size));
            case AVG ->
                hasExtremes && i % 5 == 4
                    ? nearTheLimit(dtype, random, i)
                    : wholeNumber(dtype, random, Math.max(1, 127 / size));
            case PRODUCT -> fewTwos(dtype, random, rank, i);
            case PREMUL_SUM -> 2 * wholeNumber(dtype, random, Math.max(1, 64 / size));
            case MIN, MAX ->
                hasExtremes && dtype.isFloatingPoint() && i % 5 == 4 && random.nextInt(3) == 0
                    ? Double.NaN
                    : wholeNumber(dtype, random, dtype == DType.UINT8 ? 255 : 127);
            case BAND, BOR, BXOR -> wholeNumber(dtype, random, dtype == DType.UINT8 ? 255 : 127);
          };
    }
    return values;
  }

  /**
   * Creates a number of the same magnitude on all ranks, so that their sum has few bits; it has the
   * same sign too in int64, whose sums do not fit the reference otherwise.
   */
  private static double nearTheLimit(DType dtype, SplittableRandom random, int place) {
    double magnitude = (place % 2 == 0 ? 1 : 1.5) * Reference.largestPower(dtype);
    boolean negative =
        switch (dtype) {
          case UINT8 -> false;
          case INT64 -> place % 3 == 0;
          default -> random.nextInt(4) == 0;
        };
    return negative ? -magnitude : magnitude;
  }

  /** Returns a factor for PREMUL_SUM under which {@link #toReduce} stays exact. */
  static double factor(int rank) {
    return FACTORS[rank % FACTORS.length];
  }

  /** Returns the operator, with this rank's factor if it takes one. */
  static ReduceOp op(ReduceOp.Kind kind, int rank) {
    return kind == ReduceOp.Kind.PREMUL_SUM
        ? ReduceOp.premulSum(factor(rank))
        : ReduceOp.ofName(kind.name());
  }

  /** Creates integers that use all bits, so that sums and products wrap. */
  static long[] wrapping(DType dtype, int rank, long seed, int numel) {
    SplittableRandom random = random(seed, rank);
    return random.longs(numel).map(value -> Reference.wrap(dtype, value)).toArray();
  }

  /** Creates real numbers with magnitudes from 0.5 to 2 and either sign. */
  static double[] realNumbers(int rank, long seed, int numel) {
    SplittableRandom random = random(seed, rank);
    return random
        .doubles(numel, 0.5, 2)
        .map(value -> random.nextBoolean() ? value : -value)
        .toArray();
  }

  /** Creates the given number of copies of a value. */
  static double[] constant(DType dtype, double value, long numel) {
    double[] values = new double[reals(dtype, numel)];
    Arrays.fill(values, value);
    return values;
  }

  private static double wholeNumber(DType dtype, SplittableRandom random, int limit) {
    if (dtype == DType.BOOL) {
      return random.nextInt(2);
    }
    boolean signed = dtype != DType.UINT8 && !dtype.isOpaque();
    return random.nextInt(signed ? -limit : 0, limit + 1);
  }

  /**
   * Keeps products over any number of ranks small: only a few ranks have a two at the same place.
   */
  private static double fewTwos(DType dtype, SplittableRandom random, int rank, int place) {
    if (dtype == DType.BOOL) {
      return random.nextInt(8) == 0 ? 0 : 1;
    }
    boolean signed = dtype != DType.UINT8;
    double magnitude = rank % 11 == place % 11 ? 2 : 1;
    return signed && random.nextBoolean() ? -magnitude : magnitude;
  }

  private static SplittableRandom random(long seed, int rank) {
    return new SplittableRandom(seed * 1_000_003 + rank);
  }
}
