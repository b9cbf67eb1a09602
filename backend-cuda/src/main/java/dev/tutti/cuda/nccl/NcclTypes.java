package dev.tutti.cuda.nccl;

import dev.tutti.DType;
import dev.tutti.ReduceOp;

/** NCCL's numbers for element types and operators. */
public final class NcclTypes {
  /** The number for bytes. */
  public static final int BYTE = 1;

  private static final int INT8 = 0;
  private static final int INT32 = 2;
  private static final int INT64 = 4;
  private static final int FLOAT16 = 6;
  private static final int FLOAT32 = 7;
  private static final int FLOAT64 = 8;
  private static final int BFLOAT16 = 9;
  private static final int SUM = 0;
  private static final int PRODUCT = 1;
  private static final int MAX = 2;
  private static final int MIN = 3;
  private static final int AVG = 4;

  private NcclTypes() {}

  /**
   * Returns whether NCCL reduces elements of a type; a complex element is handled as two real ones.
   */
  public static boolean isReducible(DType dtype) {
    return !dtype.isOpaque() && dtype != DType.INT16;
  }

  /** Returns whether NCCL supports an operator. */
  public static boolean has(ReduceOp.Kind kind) {
    return switch (kind) {
      case SUM, AVG, PRODUCT, MIN, MAX, PREMUL_SUM -> true;
      case BAND, BOR, BXOR -> false;
    };
  }

  /** Returns the number of a reducible type; for a complex type, that of its parts. */
  public static int type(DType dtype) {
    return switch (dtype.toReal()) {
      case FLOAT32 -> FLOAT32;
      case FLOAT64 -> FLOAT64;
      case FLOAT16 -> FLOAT16;
      case BFLOAT16 -> BFLOAT16;
      case INT8 -> INT8;
      case UINT8, BOOL -> BYTE;
      case INT32 -> INT32;
      case INT64 -> INT64;
      default -> throw new IllegalArgumentException("NCCL does not reduce " + dtype.label());
    };
  }

  /** Returns the number of NCCL elements that represent the given number of elements. */
  public static long count(DType dtype, long numel) {
    return dtype.isComplex() ? 2 * numel : numel;
  }

  /**
   * Returns the number of an operator that needs no factor. The sum of {@code bool} is "or", as in
   * c10d's NCCL backend.
   */
  public static int op(ReduceOp.Kind kind, DType dtype) {
    return switch (kind) {
      case SUM -> dtype == DType.BOOL ? MAX : SUM;
      case AVG -> AVG;
      case PRODUCT -> dtype == DType.BOOL ? MIN : PRODUCT;
      case MIN -> MIN;
      case MAX -> MAX;
      case BAND, BOR, BXOR, PREMUL_SUM ->
          throw new IllegalArgumentException("NCCL has no constant for " + kind);
    };
  }

  /** Returns a factor as an element of a floating-point or complex type, in the lowest bytes. */
  public static long element(double factor, DType dtype) {
    return switch (dtype.toReal()) {
      case FLOAT32 -> Float.floatToRawIntBits((float) factor) & 0xffff_ffffL;
      case FLOAT64 -> Double.doubleToRawLongBits(factor);
      case FLOAT16 -> Float.floatToFloat16((float) factor) & 0xffffL;
      case BFLOAT16 -> bfloat16((float) factor) & 0xffffL;
      default -> throw new IllegalArgumentException("no factor of type " + dtype.label());
    };
  }

  /** Rounds to nearest, ties to even. */
  private static int bfloat16(float value) {
    int bits = Float.floatToRawIntBits(value);
    return Float.isNaN(value) ? 0x7fc0 : (bits + 0x7fff + (bits >>> 16 & 1)) >>> 16;
  }
}
