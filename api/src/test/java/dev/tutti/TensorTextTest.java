package dev.tutti;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import org.junit.jupiter.api.Test;

class TensorTextTest {
  private static Tensor of(DType dtype, double... values) {
    Tensor tensor = Tensor.allocate(dtype, values.length);
    for (int i = 0; i < values.length; i++) {
      tensor.setDouble(i, values[i]);
    }
    return tensor;
  }

  @Test
  void showsTheElementsOfEachType() {
    assertThat(Tensor.of(6f, 0.1f)).hasToString("float32[2] on cpu [6.0, 0.1]");
    assertThat(Tensor.of(0.1)).hasToString("float64[1] on cpu [0.1]");
    assertThat(of(DType.FLOAT16, 1.5)).hasToString("float16[1] on cpu [1.5]");
    assertThat(of(DType.BFLOAT16, -2)).hasToString("bfloat16[1] on cpu [-2.0]");
    assertThat(of(DType.BOOL, 1, 0)).hasToString("bool[2] on cpu [true, false]");
    assertThat(of(DType.UINT8, 255)).hasToString("uint8[1] on cpu [255]");
    assertThat(Tensor.of(Long.MIN_VALUE)).hasToString("int64[1] on cpu [" + Long.MIN_VALUE + "]");
    Tensor opaque = Tensor.ofUint8((byte) 0x0c).view(DType.FLOAT8_E5M2);
    assertThat(opaque).hasToString("float8_e5m2[1] on cpu [0x0c]");
    Tensor complex = Tensor.allocate(DType.COMPLEX64, 2);
    complex.viewAsReal().setDouble(1, -3.0);
    assertThat(complex).hasToString("complex64[2] on cpu [(0.0, -3.0), (0.0, 0.0)]");
  }

  @Test
  void showsSixteenElementsInRowMajorOrder() {
    assertThat(Tensor.allocate(DType.INT8, 4, 4))
        .hasToString("int8[4, 4] on cpu [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]");
    assertThat(Tensor.allocate(DType.INT8, 17))
        .hasToString("int8[17] on cpu [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, ...]");
    assertThat(Tensor.of(1, 2, 3, 4).view(2, 2).transpose(0, 1))
        .hasToString("int32[2, 2] strides [1, 2] on cpu [1, 3, 2, 4]");
    assertThat(Tensor.allocate(DType.INT32)).hasToString("int32[] on cpu [0]");
    assertThat(Tensor.allocate(DType.INT32, 0)).hasToString("int32[0] on cpu []");
  }

  @Test
  void showsNoElementsThatCannotBeRead() throws InterruptedException {
    Tensor freed;
    try (Arena arena = Arena.ofConfined()) {
      freed = Tensor.allocate(arena, DType.INT32, 2);
      String[] elsewhere = new String[1];
      Thread other = Thread.ofPlatform().start(() -> elsewhere[0] = freed.toString());
      other.join();
      assertThat(elsewhere[0]).isEqualTo("int32[2] on cpu");
      assertThat(freed).hasToString("int32[2] on cpu [0, 0]");
    }
    assertThat(freed).hasToString("int32[2] on cpu");
    long[] sizes = {2};
    MemorySegment nowhere = MemorySegment.ofAddress(64).reinterpret(8);
    assertThat(Tensor.wrap(nowhere, DType.INT32, sizes, new long[] {1}, new Device("cuda", 0)))
        .hasToString("int32[2] on cuda:0");
  }

  @Test
  void describesWithoutElements() {
    assertThat(Tensor.of(6f, 4f).describe()).isEqualTo("float32[2] on cpu");
  }

  @Test
  void copiesIntegersOfUpTo32Bits() {
    assertThat(Tensor.of(1, -2, Integer.MIN_VALUE).toIntArray())
        .containsExactly(1, -2, Integer.MIN_VALUE);
    assertThat(Tensor.ofUint8((byte) -1).toIntArray()).containsExactly(255);
    assertThat(of(DType.INT16, -5).toIntArray()).containsExactly(-5);
    assertThat(of(DType.BOOL, 7).toIntArray()).containsExactly(1);
    assertThatIllegalStateException()
        .isThrownBy(() -> Tensor.of(1L).toIntArray())
        .withMessage("int64 does not fit into int; use a long[]");
    assertThatIllegalStateException()
        .isThrownBy(() -> Tensor.of(1f).toIntArray())
        .withMessage("float32 is not an integer type");
  }
}
