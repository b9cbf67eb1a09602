package dev.tutti.cuda.driver;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import org.junit.jupiter.api.Test;

class LaunchParametersTest {
  @Test
  void theBlockHoldsTheAddressOfEachParameter() {
    LaunchParameters parameters = new LaunchParameters(3);
    parameters.set(0, 1L << 40);
    parameters.set(1, -7);
    parameters.set(2, 2.5f);
    assertThat(at(parameters, 0).get(ValueLayout.JAVA_LONG, 0)).isEqualTo(1L << 40);
    assertThat(at(parameters, 1).get(ValueLayout.JAVA_INT, 0)).isEqualTo(-7);
    assertThat(at(parameters, 2).get(ValueLayout.JAVA_FLOAT, 0)).isEqualTo(2.5f);
    assertThatThrownBy(() -> parameters.set(3, 1)).isInstanceOf(IndexOutOfBoundsException.class);
    assertThatThrownBy(() -> parameters.set(-1, 1)).isInstanceOf(IndexOutOfBoundsException.class);
  }

  private static MemorySegment at(LaunchParameters parameters, int index) {
    long address =
        MemorySegment.ofAddress(parameters.address())
            .reinterpret(3L * Long.BYTES)
            .getAtIndex(ValueLayout.JAVA_LONG, index);
    return MemorySegment.ofAddress(address).reinterpret(Long.BYTES);
  }
}
