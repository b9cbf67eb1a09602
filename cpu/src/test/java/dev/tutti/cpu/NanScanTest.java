package dev.tutti.cpu;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.DType;
import dev.tutti.Tensor;
import java.lang.foreign.ValueLayout;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

class NanScanTest {
  /**
   * For each type that has NaNs: the bits of NaNs, and the bits of infinity or the largest number.
   */
  private static final Map<DType, long[][]> BITS =
      Map.of(
          DType.FLOAT32, new long[][] {{0x7fc00000L, 0xffc00000L, 0x7f800001L}, {0xff800000L}},
          DType.FLOAT64,
              new long[][] {
                {0x7ff8000000000000L, 0xfff8000000000000L, 0x7ff0000000000001L},
                {0xfff0000000000000L}
              },
          DType.FLOAT16, new long[][] {{0x7e00, 0xfe00, 0x7c01}, {0xfc00, 0x7c00}},
          DType.BFLOAT16, new long[][] {{0x7fc0, 0xffc0, 0x7f81}, {0xff80, 0x7f80}},
          DType.FLOAT8_E4M3FN, new long[][] {{0x7f, 0xff}, {0x7e, 0xfe}},
          DType.FLOAT8_E5M2, new long[][] {{0x7d, 0x7e, 0x7f, 0xfd}, {0x7c, 0xfc}},
          DType.FLOAT8_E4M3FNUZ, new long[][] {{0x80}, {0x7f, 0xff}},
          DType.FLOAT8_E5M2FNUZ, new long[][] {{0x80}, {0x7f, 0xff}});

  private static void put(Tensor tensor, long index, long bits) {
    switch (tensor.dtype().byteSize()) {
      case 1 -> tensor.segment().set(ValueLayout.JAVA_BYTE, index, (byte) bits);
      case 2 -> tensor.segment().setAtIndex(ValueLayout.JAVA_SHORT, index, (short) bits);
      case 4 -> tensor.segment().setAtIndex(ValueLayout.JAVA_INT, index, (int) bits);
      default -> tensor.segment().setAtIndex(ValueLayout.JAVA_LONG, index, bits);
    }
  }

  @ParameterizedTest
  @EnumSource(
      names = {
        "FLOAT32",
        "FLOAT64",
        "FLOAT16",
        "BFLOAT16",
        "FLOAT8_E4M3FN",
        "FLOAT8_E5M2",
        "FLOAT8_E4M3FNUZ",
        "FLOAT8_E5M2FNUZ"
      })
  void theFirstOfEachTypeIsFound(DType dtype) {
    long[][] bits = BITS.getOrDefault(dtype, new long[2][0]);
    Tensor tensor = Tensor.allocate(dtype, 5000);
    for (long other : bits[1]) {
      put(tensor, 7, other);
      assertThat(NanScan.firstNan(tensor)).isEqualTo(-1);
    }
    for (long nan : bits[0]) {
      for (long index : new long[] {4999, 1024, 1023, 0}) {
        put(tensor, index, nan);
        assertThat(NanScan.firstNan(tensor)).isEqualTo(index);
      }
      for (long index : new long[] {4999, 1024, 1023, 0}) {
        put(tensor, index, 0);
      }
    }
  }

  @ParameterizedTest
  @ValueSource(longs = {0, 1, 3})
  void shortOnesAreSearchedToTheEnd(long numel) {
    Tensor tensor = Tensor.allocate(DType.FLOAT32, numel);
    assertThat(NanScan.firstNan(tensor)).isEqualTo(-1);
    if (numel > 0) {
      tensor.setFloat(numel - 1, Float.NaN);
      assertThat(NanScan.firstNan(tensor)).isEqualTo(numel - 1);
    }
  }

  @Test
  void complexPartsStridesAndNumbersWithoutNan() {
    Tensor complex = Tensor.allocate(DType.COMPLEX64, 3);
    complex.viewAsReal().setFloat(5, Float.NaN);
    assertThat(NanScan.firstNan(complex)).isEqualTo(2);
    Tensor rows = Tensor.of(1f, 2f, Float.NaN, 4f).view(2, 2);
    assertThat(NanScan.firstNan(rows.select(1, 0))).isEqualTo(1);
    assertThat(NanScan.firstNan(rows.select(1, 1))).isEqualTo(-1);
    assertThat(NanScan.firstNan(Tensor.of(-1L, Long.MAX_VALUE))).isEqualTo(-1);
  }
}
