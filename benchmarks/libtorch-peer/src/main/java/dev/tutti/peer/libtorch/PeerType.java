package dev.tutti.peer.libtorch;

import java.nio.ByteBuffer;
import java.util.Locale;

/**
 * The element types that a peer script can name, with the encoding of one component in
 * little-endian bytes.
 */
public enum PeerType {
  /** IEEE binary32. */
  FLOAT32(4, 1),
  /** IEEE binary64. */
  FLOAT64(8, 1),
  /** IEEE binary16. */
  FLOAT16(2, 1),
  /** The upper half of a binary32, rounded to nearest even. */
  BFLOAT16(2, 1),
  /** Signed 8-bit integer. */
  INT8(1, 1),
  /** Unsigned 8-bit integer. */
  UINT8(1, 1),
  /** One byte, 0 or 1. */
  BOOL(1, 1),
  /** Signed 16-bit integer, which Gloo refuses. */
  INT16(2, 1),
  /** Signed 32-bit integer. */
  INT32(4, 1),
  /** Signed 64-bit integer. */
  INT64(8, 1),
  /** Two float32 components: real, imaginary. */
  COMPLEX64(4, 2),
  /** Two float64 components: real, imaginary. */
  COMPLEX128(8, 2);

  private final int componentBytes;
  private final int components;

  PeerType(int componentBytes, int components) {
    this.componentBytes = componentBytes;
    this.components = components;
  }

  /**
   * Finds a type by the name that scripts use.
   *
   * @param name lower-case name, such as {@code float32}
   * @return the type
   * @throws IllegalArgumentException if no type has that name
   */
  public static PeerType of(String name) {
    for (PeerType type : values()) {
      if (type.scriptName().equals(name)) {
        return type;
      }
    }
    throw new IllegalArgumentException(
        "dtype: expected one of the names of PeerType in lower case, got " + name);
  }

  /**
   * Returns the name that scripts use.
   *
   * @return the lower-case name
   */
  public String scriptName() {
    return name().toLowerCase(Locale.ROOT);
  }

  /**
   * Returns the size of one element.
   *
   * @return bytes per element; a complex element counts both components
   */
  public int byteSize() {
    return componentBytes * components;
  }

  /**
   * Returns how many numbers one element holds.
   *
   * @return 2 for the complex types, else 1
   */
  public int components() {
    return components;
  }

  /**
   * Returns whether the components are floating-point numbers.
   *
   * @return true for the float, bfloat and complex types
   */
  public boolean isFloating() {
    return switch (this) {
      case FLOAT32, FLOAT64, FLOAT16, BFLOAT16, COMPLEX64, COMPLEX128 -> true;
      case INT8, UINT8, BOOL, INT16, INT32, INT64 -> false;
    };
  }

  /**
   * Appends one component, rounded to nearest even; the 16-bit types round through float32 first.
   *
   * @param out little-endian buffer, advanced by the size of one component
   * @param value the number; integers must be exact
   */
  public void put(ByteBuffer out, double value) {
    switch (this) {
      case FLOAT32, COMPLEX64 -> out.putFloat((float) value);
      case FLOAT64, COMPLEX128 -> out.putDouble(value);
      case FLOAT16 -> out.putShort(Float.floatToFloat16((float) value));
      case BFLOAT16 -> out.putShort(toBfloat16((float) value));
      case INT8, UINT8, BOOL -> out.put((byte) (long) value);
      case INT16 -> out.putShort((short) (long) value);
      case INT32 -> out.putInt((int) (long) value);
      case INT64 -> out.putLong((long) value);
    }
  }

  /**
   * Reads one component as text.
   *
   * @param in little-endian buffer, advanced by the size of one component
   * @return integers in decimal, floating-point numbers as {@link Double#toString(double)} of the
   *     exact value
   */
  public String take(ByteBuffer in) {
    return switch (this) {
      case FLOAT32, COMPLEX64 -> Double.toString(in.getFloat());
      case FLOAT64, COMPLEX128 -> Double.toString(in.getDouble());
      case FLOAT16 -> Double.toString(Float.float16ToFloat(in.getShort()));
      case BFLOAT16 -> Double.toString(Float.intBitsToFloat(in.getShort() << 16));
      case INT8 -> Byte.toString(in.get());
      case UINT8, BOOL -> Integer.toString(Byte.toUnsignedInt(in.get()));
      case INT16 -> Short.toString(in.getShort());
      case INT32 -> Integer.toString(in.getInt());
      case INT64 -> Long.toString(in.getLong());
    };
  }

  private static short toBfloat16(float value) {
    int bits = Float.floatToRawIntBits(value);
    if (Float.isNaN(value)) {
      return (short) ((bits >>> 16) | 0x40);
    }
    return (short) ((bits + 0x7fff + ((bits >>> 16) & 1)) >>> 16);
  }
}
