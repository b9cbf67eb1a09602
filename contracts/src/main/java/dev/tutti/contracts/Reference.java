package dev.tutti.contracts;

import dev.tutti.DType;
import dev.tutti.ReduceOp;
import java.util.List;

/**
 * A reference that computes the expected results of reductions: in float64 for reals, and modulo
 * the width of the type for integers.
 */
final class Reference {
  /** The factor with which means are computed, so that no sum of float64 overflows. */
  private static final double SMALL = 0x1p-20;

  private Reference() {}

  /**
   * Reduces whole numbers that are exact in the type; see {@link TestData#toReduce}. AVG divides
   * once; integers are truncated toward zero.
   *
   * @param inputs the inputs, one for each rank
   */
  static double[] reduce(ReduceOp.Kind kind, DType dtype, List<double[]> inputs) {
    double[] result = new double[inputs.get(0).length];
    for (int i = 0; i < result.length; i++) {
      double value = scaled(kind, inputs, 0, i);
      for (int rank = 1; rank < inputs.size(); rank++) {
        value = combine(kind, dtype, value, scaled(kind, inputs, rank, i));
      }
      if (kind == ReduceOp.Kind.AVG) {
        double quotient = value / inputs.size() / SMALL;
        value = isReal(dtype) ? quotient : (long) quotient;
      }
      result[i] = value;
    }
    return result;
  }

  /**
   * Returns how far a result may be from {@link #reduce}. Whole numbers are exact; only the
   * division of AVG rounds, and it does so once.
   */
  static double[] exactTolerance(ReduceOp.Kind kind, DType dtype, double[] expected) {
    double[] tolerance = new double[expected.length];
    if (kind == ReduceOp.Kind.AVG && isReal(dtype)) {
      for (int i = 0; i < expected.length; i++) {
        tolerance[i] = epsilon(dtype) * Math.abs(expected[i]);
      }
    }
    return tolerance;
  }

  /**
   * Returns how far a reduction of arbitrary real numbers may be from float64. Each of the steps,
   * one for each rank, may round to the type, so the tolerance is {@code ranks * epsilon * sum of
   * magnitudes}, or with the product of the magnitudes for products. MIN and MAX are exact.
   */
  static double[] roundingTolerance(ReduceOp.Kind kind, DType dtype, List<double[]> inputs) {
    double[] tolerance = new double[inputs.get(0).length];
    if (kind == ReduceOp.Kind.MIN || kind == ReduceOp.Kind.MAX) {
      return tolerance;
    }
    for (int i = 0; i < tolerance.length; i++) {
      double magnitude = Math.abs(scaled(kind, inputs, 0, i));
      for (int rank = 1; rank < inputs.size(); rank++) {
        double other = Math.abs(scaled(kind, inputs, rank, i));
        magnitude = kind == ReduceOp.Kind.PRODUCT ? magnitude * other : magnitude + other;
      }
      magnitude = kind == ReduceOp.Kind.AVG ? magnitude / SMALL : magnitude;
      tolerance[i] = (inputs.size() + 1) * epsilon(dtype) * magnitude;
    }
    return tolerance;
  }

  /** Returns the distance between 1 and the next greater number of a real type. */
  static double epsilon(DType dtype) {
    return switch (dtype.toReal()) {
      case FLOAT64 -> 0x1p-52;
      case FLOAT32 -> 0x1p-23;
      case FLOAT16 -> 0x1p-10;
      case BFLOAT16 -> 0x1p-7;
      default -> throw new IllegalArgumentException(dtype + " is not a real type");
    };
  }

  /** Returns the largest power of two of which a type can represent one and a half. */
  static double largestPower(DType dtype) {
    return switch (dtype.toReal()) {
      case FLOAT64 -> 0x1p1023;
      case FLOAT32, BFLOAT16 -> 0x1p127;
      case FLOAT16 -> 0x1p15;
      case UINT8 -> 0x1p7;
      default -> Math.scalb(1.0, 8 * dtype.byteSize() - 2);
    };
  }

  /** Reduces integers modulo the width of the type. */
  static long[] reduceWrapping(ReduceOp.Kind kind, DType dtype, List<long[]> inputs) {
    long[] result = inputs.get(0).clone();
    for (long[] input : inputs.subList(1, inputs.size())) {
      for (int i = 0; i < result.length; i++) {
        long a = result[i];
        long b = input[i];
        long value =
            switch (kind) {
              case SUM -> a + b;
              case PRODUCT -> a * b;
              case MIN -> Math.min(a, b);
              case MAX -> Math.max(a, b);
              case BAND -> a & b;
              case BOR -> a | b;
              case BXOR -> a ^ b;
              case AVG, PREMUL_SUM -> throw new IllegalArgumentException(kind.name());
            };
        result[i] = wrap(dtype, value);
      }
    }
    return result;
  }

  /** Keeps the low bits of a number that fit into an integer type. */
  static long wrap(DType dtype, long value) {
    return switch (dtype) {
      case INT8 -> (byte) value;
      case UINT8 -> value & 0xff;
      case INT16 -> (short) value;
      case INT32 -> (int) value;
      default -> value;
    };
  }

  static boolean isReal(DType dtype) {
    return dtype.toReal().isFloatingPoint();
  }

  private static double scaled(ReduceOp.Kind kind, List<double[]> inputs, int rank, int i) {
    double value = inputs.get(rank)[i];
    return switch (kind) {
      case PREMUL_SUM -> value * TestData.factor(rank);
      case AVG -> value * SMALL;
      default -> value;
    };
  }

  private static double combine(ReduceOp.Kind kind, DType dtype, double a, double b) {
    if (dtype == DType.BOOL) {
      return switch (kind) {
        case SUM, MAX, BOR -> Math.max(a, b);
        case PRODUCT, MIN, BAND -> Math.min(a, b);
        case BXOR -> a == b ? 0 : 1;
        case AVG, PREMUL_SUM -> throw new IllegalArgumentException(kind + " of bool");
      };
    }
    return switch (kind) {
      case SUM, AVG, PREMUL_SUM -> a + b;
      case PRODUCT -> a * b;
      case MIN -> Math.min(a, b);
      case MAX -> Math.max(a, b);
      case BAND -> (long) a & (long) b;
      case BOR -> (long) a | (long) b;
      case BXOR -> (long) a ^ (long) b;
    };
  }
}
