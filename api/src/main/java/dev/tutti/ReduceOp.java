package dev.tutti;

import java.util.Objects;

/** Says how elements of several ranks become one (c10d: {@code ReduceOp}). Immutable. */
public final class ReduceOp {
  /** Adds. On {@link DType#BOOL}: or. */
  public static final ReduceOp SUM = new ReduceOp(Kind.SUM, 1);

  /** Adds, then divides by the number of ranks; integers truncate toward zero. */
  public static final ReduceOp AVG = new ReduceOp(Kind.AVG, 1);

  /** Multiplies. On {@link DType#BOOL}: and. */
  public static final ReduceOp PRODUCT = new ReduceOp(Kind.PRODUCT, 1);

  /** Takes the least; a NaN of the accumulated side stays, as in Gloo. */
  public static final ReduceOp MIN = new ReduceOp(Kind.MIN, 1);

  /** Takes the greatest; a NaN of the accumulated side stays, as in Gloo. */
  public static final ReduceOp MAX = new ReduceOp(Kind.MAX, 1);

  /** Bitwise and; integers and bool only. */
  public static final ReduceOp BAND = new ReduceOp(Kind.BAND, 1);

  /** Bitwise or; integers and bool only. */
  public static final ReduceOp BOR = new ReduceOp(Kind.BOR, 1);

  /** Bitwise exclusive or; integers and bool only. */
  public static final ReduceOp BXOR = new ReduceOp(Kind.BXOR, 1);

  /** Names the operators, in c10d's order. */
  public enum Kind {
    /** Adds. */
    SUM,
    /** Adds and divides by the number of ranks. */
    AVG,
    /** Multiplies. */
    PRODUCT,
    /** Takes the least. */
    MIN,
    /** Takes the greatest. */
    MAX,
    /** Bitwise and. */
    BAND,
    /** Bitwise or. */
    BOR,
    /** Bitwise exclusive or. */
    BXOR,
    /** Multiplies each rank's elements by its own factor, then adds. */
    PREMUL_SUM;

    /**
     * Tells whether the operator is defined on a type.
     *
     * <p>Opaque types can never be reduced; complex ones only by SUM, AVG and PREMUL_SUM (c10d's
     * {@code isComplexViewAsRealAllowed}); PREMUL_SUM needs floating-point parts; bitwise operators
     * need integers or bool; AVG is not defined on bool.
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
   * Creates the operator that scales each rank's elements before it adds them.
   *
   * @param factor this rank's factor; ranks may differ
   */
  public static ReduceOp premulSum(double factor) {
    return new ReduceOp(Kind.PREMUL_SUM, factor);
  }

  /**
   * Creates the operator that scales each rank's elements before it adds them.
   *
   * @param factor a host tensor of one floating-point element, read now
   * @throws IllegalArgumentException if it has another shape or type
   */
  public static ReduceOp premulSum(Tensor factor) {
    if (factor.numel() != 1 || !factor.dtype().isFloatingPoint() || !factor.device().isCpu()) {
      throw new IllegalArgumentException(
          "factor must be one floating-point element on the host, not " + factor);
    }
    return premulSum(factor.getDouble(0));
  }

  /**
   * Finds an operator by its name in any case, such as {@code sum}.
   *
   * @param name one of {@link Kind} but {@code PREMUL_SUM}
   * @throws IllegalArgumentException if there is none such
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
              "no such reduce op: '" + name + "'; known are sum avg product min max band bor bxor");
    };
  }

  /** Returns which operator this is. */
  public Kind kind() {
    return kind;
  }

  /** Returns the factor of {@link Kind#PREMUL_SUM}, else 1. */
  public double factor() {
    return factor;
  }

  /** Tells whether this is one of {@link #BAND}, {@link #BOR} and {@link #BXOR}. */
  public boolean isBitwise() {
    return kind == Kind.BAND || kind == Kind.BOR || kind == Kind.BXOR;
  }

  /**
   * Tells whether the operator is defined on a type, as {@link Kind#isDefinedOn} does.
   *
   * @param dtype the element type
   */
  public boolean isDefinedOn(DType dtype) {
    return kind.isDefinedOn(dtype);
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
