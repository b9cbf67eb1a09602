package dev.tutti.cuda.nccl;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.tutti.DType;
import dev.tutti.ReduceOp;
import org.junit.jupiter.api.Test;

/** Tests NCCL's numbers. */
class NcclTypesTest {
  @Test
  void countsComplexNumbersTwice() {
    assertThat(NcclTypes.type(DType.COMPLEX64)).isEqualTo(NcclTypes.type(DType.FLOAT32));
    assertThat(NcclTypes.count(DType.COMPLEX64, 5)).isEqualTo(10);
    assertThat(NcclTypes.count(DType.FLOAT32, 5)).isEqualTo(5);
  }

  @Test
  void sumsOfBoolAreOr() {
    assertThat(NcclTypes.op(ReduceOp.Kind.SUM, DType.BOOL))
        .isEqualTo(NcclTypes.op(ReduceOp.Kind.MAX, DType.UINT8));
    assertThat(NcclTypes.op(ReduceOp.Kind.PRODUCT, DType.BOOL))
        .isEqualTo(NcclTypes.op(ReduceOp.Kind.MIN, DType.UINT8));
  }

  @Test
  void writesFactorsAsElements() {
    assertThat(NcclTypes.element(1.5, DType.FLOAT32)).isEqualTo(0x3fc0_0000L);
    assertThat(NcclTypes.element(-2, DType.FLOAT64)).isEqualTo(0xc000_0000_0000_0000L);
    assertThat(NcclTypes.element(1.5, DType.FLOAT16)).isEqualTo(0x3e00L);
    assertThat(NcclTypes.element(-2, DType.BFLOAT16)).isEqualTo(0xc000L);
    assertThat(NcclTypes.element(1 + 1.0 / 256, DType.BFLOAT16)).isEqualTo(0x3f80L);
    assertThat(NcclTypes.element(1 + 3.0 / 256, DType.BFLOAT16)).isEqualTo(0x3f82L);
  }

  @Test
  void hasNoSmallIntegersAndNoBits() {
    assertThat(NcclTypes.isReducible(DType.INT16)).isFalse();
    assertThat(NcclTypes.isReducible(DType.FLOAT8_E5M2)).isFalse();
    assertThat(NcclTypes.has(ReduceOp.Kind.BXOR)).isFalse();
    assertThatThrownBy(() -> NcclTypes.type(DType.INT16)).hasMessageContaining("int16");
  }
}
