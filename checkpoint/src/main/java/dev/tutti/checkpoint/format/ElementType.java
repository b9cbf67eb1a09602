package dev.tutti.checkpoint.format;

import dev.tutti.DType;
import java.util.Arrays;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/**
 * The element types of safetensors files (safetensors, {@code tensor.rs}), also those that no
 * {@link DType} has.
 */
enum ElementType {
  BOOL(8, DType.BOOL),
  F4(4, null),
  F6_E2M3(6, null),
  F6_E3M2(6, null),
  U8(8, DType.UINT8),
  I8(8, DType.INT8),
  F8_E5M2(8, DType.FLOAT8_E5M2),
  F8_E4M3(8, DType.FLOAT8_E4M3FN),
  F8_E8M0(8, null),
  F8_E4M3FNUZ(8, DType.FLOAT8_E4M3FNUZ),
  F8_E5M2FNUZ(8, DType.FLOAT8_E5M2FNUZ),
  I16(16, DType.INT16),
  U16(16, null),
  F16(16, DType.FLOAT16),
  BF16(16, DType.BFLOAT16),
  I32(32, DType.INT32),
  U32(32, null),
  F32(32, DType.FLOAT32),
  C64(64, DType.COMPLEX64),
  F64(64, DType.FLOAT64),
  I64(64, DType.INT64),
  U64(64, null);

  private final int bits;
  private final @Nullable DType dtype;

  ElementType(int bits, @Nullable DType dtype) {
    this.bits = bits;
    this.dtype = dtype;
  }

  int bits() {
    return bits;
  }

  Optional<DType> dtype() {
    return Optional.ofNullable(dtype);
  }

  static Optional<ElementType> of(DType dtype) {
    return Arrays.stream(values()).filter(type -> type.dtype == dtype).findFirst();
  }

  static ElementType named(String name) throws MalformedException {
    for (ElementType type : values()) {
      if (type.name().equals(name)) {
        return type;
      }
    }
    throw new MalformedException("unknown element type '" + name + "'");
  }
}
