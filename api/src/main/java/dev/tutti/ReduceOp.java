package dev.tutti;

import java.io.InvalidObjectException;
import java.io.Serializable;
import java.util.Objects;

/**
 * An operator that combines the elements of several ranks (c10d: {@code ReduceOp}). Immutable. An
 * operator that was serialized becomes the same constant again, or one with an equal factor.
 */
public final class ReduceOp implements Serializable {
  private static final long serialVersionUID = 1L;

  /** Sum; on {@link DType#BOOL}, logical or. */
  public static final ReduceOp SUM = new ReduceOp(Kind.SUM, 1);

  /**
   * Sum divided by the number of ranks. It is finite where the mean can be represented, although
   * the sum may not be; integers are truncated once, toward zero. NCCL, and groups with PyTorch
   * ranks, compute it their way.
   */
  public static final ReduceOp AVG = new ReduceOp(Kind.AVG, 1);

  /** Product; on {@link DType#BOOL}, logical and. */
  public static final ReduceOp PRODUCT = new ReduceOp(Kind.PRODUCT, 1);

  /** Minimum; NaN wins, except with NCCL and in groups with PyTorch ranks. */
  public static final ReduceOp MIN = new ReduceOp(Kind.MIN, 1);

  /** Maximum; NaN wins, except with NCCL and in groups with PyTorch ranks. */
  public static final ReduceOp MAX = new ReduceOp(Kind.MAX, 1);

  /** Bitwise and; integers and bool only. */
  public static final ReduceOp BAND = new ReduceOp(Kind.BAND, 1);

  /** Bitwise or; integers and bool only. */
  public static final ReduceOp BOR = new ReduceOp(Kind.BOR, 1);

  /** Bitwise exclusive or; integers and bool only. */
  public static final ReduceOp BXOR = new ReduceOp(Kind.BXOR, 1);

  /** The kinds of operators, in c10d's order. */
  public enum Kind {
    /** Sum. */
    SUM,
    /** Sum divided by the number of ranks. */
    AVG,
    /** Product. */
    PRODUCT,
    /** Minimum. */
    MIN,
    /** Maximum. */
    MAX,
    /** Bitwise and. */
    BAND,
    /** Bitwise or. */
    BOR,
    /** Bitwise exclusive or. */
    BXOR,
    /** Sum of each rank's elements multiplied by the rank's own factor. */
    PREMUL_SUM;

    /**
     * Returns whether the operator is defined on a type.
     *
     * <p>Opaque types can never be reduced, and complex types only by SUM, AVG and PREMUL_SUM
     * (c10d's {@code isComplexViewAsRealAllowed}). PREMUL_SUM needs floating-point elements or
     * parts, bitwise operators need integers or bool, and AVG is not defined on bool.
     *
     * @param dtype the element type
     */
    public boolean isDefinedOn(DType dtype) {
      if (dtype.isOpaque()) {
        return false;
      }
      return switch (this) {
        case SUM -> true;
        case AVG -> dtype != DType.BOOL;
        case PREMUL_SUM -> dtype.isFloatingPoint() || dtype.isComplex();
        case PRODUCT, MIN, MAX -> !dtype.isComplex();
        case BAND, BOR, BXOR -> dtype.isInteger() || dtype == DType.BOOL;
      };
    }
  }

  private final Kind kind;
  private final double factor;

  private ReduceOp(Kind kind, double factor) {
    this.kind = kind;
    this.factor = factor;
  }

  /**
   * Creates an operator that scales each rank's elements before adding them.
   *
   * @param factor this rank's factor; ranks may have different ones
   */
  public static ReduceOp premulSum(double factor) {
    return new ReduceOp(Kind.PREMUL_SUM, factor);
  }

  /**
   * Creates an operator that scales each rank's elements before adding them.
   *
   * @param factor a host tensor with one floating-point element, which is read during the call
   * @throws IllegalArgumentException if the tensor has another shape or type
   */
  public static ReduceOp premulSum(Tensor factor) {
    if (factor.numel() != 1 || !factor.dtype().isFloatingPoint() || !factor.device().isCpu()) {
      throw new IllegalArgumentException(
          "factor must be one floating-point element on the host, not " + factor);
    }
    return premulSum(factor.getDouble(0));
  }

  /**
   * Finds an operator by name, ignoring case, such as {@code sum}.
   *
   * @param name the name of any {@link Kind} except {@code PREMUL_SUM}
   * @throws IllegalArgumentException if there is no such operator
   */
  public static ReduceOp ofName(String name) {
    return switch (name.toUpperCase(java.util.Locale.ROOT)) {
      case "SUM" -> SUM;
      case "AVG" -> AVG;
      case "PRODUCT", "PROD" -> PRODUCT;
      case "MIN" -> MIN;
      case "MAX" -> MAX;
      case "BAND" -> BAND;
      case "BOR" -> BOR;
      case "BXOR" -> BXOR;
      default ->
          throw new IllegalArgumentException(
              "no such reduce op: '"
                  + name
                  + "'; expected one of sum avg product min max band bor bxor");
    };
  }

  /** Returns the kind of this operator. */
  public Kind kind() {
    return kind;
  }

  /** Returns the factor of {@link Kind#PREMUL_SUM}, or 1 for other kinds. */
  public double factor() {
    return factor;
  }

  /** Returns whether this is one of {@link #BAND}, {@link #BOR} and {@link #BXOR}. */
  public boolean isBitwise() {
    return kind == Kind.BAND || kind == Kind.BOR || kind == Kind.BXOR;
  }

  /**
   * Returns whether the operator is defined on a type, as {@link Kind#isDefinedOn} does.
   *
   * @param dtype the element type
   */
  public boolean isDefinedOn(DType dtype) {
    return kind.isDefinedOn(dtype);
  }

  private Object readResolve() throws InvalidObjectException {
    if (kind == null) {
      throw new InvalidObjectException("a reduce op without a kind");
    }
    return kind == Kind.PREMUL_SUM ? premulSum(factor) : ofName(kind.name());
  }

  @Override
  public boolean equals(Object other) {
    return other instanceof ReduceOp that
        && kind == that.kind
        && Double.compare(factor, that.factor) == 0;
  }

  @Override
  public int hashCode() {
    return Objects.hash(kind, factor);
  }

  @Override
  public String toString() {
    return kind == Kind.PREMUL_SUM ? "PREMUL_SUM(" + factor + ")" : kind.name();
  }
}
