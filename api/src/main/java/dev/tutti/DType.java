package dev.tutti;

/** The element types of tensors. */
public enum DType {
  /** IEEE 754 binary32. */
  FLOAT32("float32", 4, Kind.FLOAT),
  /** IEEE 754 binary64. */
  FLOAT64("float64", 8, Kind.FLOAT),
  /** IEEE 754 binary16. */
  FLOAT16("float16", 2, Kind.FLOAT),
  /** The upper half of binary32. */
  BFLOAT16("bfloat16", 2, Kind.FLOAT),
  /** Signed byte. */
  INT8("int8", 1, Kind.INTEGER),
  /** Unsigned byte. */
  UINT8("uint8", 1, Kind.INTEGER),
  /** One byte, 0 or 1. */
  BOOL("bool", 1, Kind.BOOL),
  /** Signed 16 bits. */
  INT16("int16", 2, Kind.INTEGER),
  /** Signed 32 bits. */
  INT32("int32", 4, Kind.INTEGER),
  /** Signed 64 bits. */
  INT64("int64", 8, Kind.INTEGER),
  /** Two float32: real, imaginary. */
  COMPLEX64("complex64", 8, Kind.COMPLEX),
  /** Two float64: real, imaginary. */
  COMPLEX128("complex128", 16, Kind.COMPLEX),
  /** 8 bits with 4 exponent bits, moved as an opaque byte. */
  FLOAT8_E4M3FN("float8_e4m3fn", 1, Kind.OPAQUE),
  /** 8 bits with 5 exponent bits, moved as an opaque byte. */
  FLOAT8_E5M2("float8_e5m2", 1, Kind.OPAQUE),
  /** 8 bits with 4 exponent bits and no negative zero, moved as an opaque byte. */
  FLOAT8_E4M3FNUZ("float8_e4m3fnuz", 1, Kind.OPAQUE),
  /** 8 bits with 5 exponent bits and no negative zero, moved as an opaque byte. */
  FLOAT8_E5M2FNUZ("float8_e5m2fnuz", 1, Kind.OPAQUE);

  private enum Kind {
    FLOAT,
    INTEGER,
    BOOL,
    COMPLEX,
    OPAQUE
  }

  private final String label;
  private final int byteSize;
  private final Kind kind;

  DType(String label, int byteSize, Kind kind) {
    this.label = label;
    this.byteSize = byteSize;
    this.kind = kind;
  }

  /** Returns PyTorch's name, such as {@code bfloat16}. */
  public String label() {
    return label;
  }

  /** Returns the size of an element in bytes. */
  public int byteSize() {
    return byteSize;
  }

  /** Returns whether elements are real floating-point numbers that can be reduced. */
  public boolean isFloatingPoint() {
    return kind == Kind.FLOAT;
  }

  /** Returns whether elements are integers; false for {@link #BOOL}. */
  public boolean isInteger() {
    return kind == Kind.INTEGER;
  }

  /** Returns whether elements are pairs of real numbers. */
  public boolean isComplex() {
    return kind == Kind.COMPLEX;
  }

  /** Returns whether elements can only be moved and never reduced. */
  public boolean isOpaque() {
    return kind == Kind.OPAQUE;
  }

  /**
   * Returns the type of the real and imaginary parts of a complex type, or the type itself if it is
   * not complex.
   */
  public DType toReal() {
    return switch (this) {
      case COMPLEX64 -> FLOAT32;
      case COMPLEX128 -> FLOAT64;
      default -> this;
    };
  }

  /**
   * Finds a type by its label.
   *
   * @param label PyTorch's name
   * @throws IllegalArgumentException naming all labels, if there is no such type
   */
  public static DType ofLabel(String label) {
    for (DType type : values()) {
      if (type.label.equals(label)) {
        return type;
      }
    }
    StringBuilder known = new StringBuilder();
    for (DType type : values()) {
      known.append(known.isEmpty() ? "" : ", ").append(type.label);
    }
    throw new IllegalArgumentException("no such dtype: '" + label + "'; expected one of " + known);
  }
}
