package dev.tutti.checkpoint;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import org.junit.jupiter.api.Test;

/** Tests that memory is allocated anew only for a larger snapshot, and freed in the end. */
class BufferTest {
  @Test
  void memoryIsUsedAgainUnlessItIsTooSmall() {
    MemorySegment last;
    try (Buffer buffer = new Buffer()) {
      assertThat(buffer.ofSize(0).byteSize()).isZero();
      MemorySegment first = buffer.ofSize(1000);
      assertThat(buffer.ofSize(10).address()).isEqualTo(first.address());
      last = buffer.ofSize(1001);
      assertThat(last.byteSize()).isEqualTo(1001);
      assertThat(last.get(ValueLayout.JAVA_BYTE, 1000)).isZero();
      assertThat(first.scope().isAlive()).isFalse();
    }
    assertThat(last.scope().isAlive()).isFalse();
  }

  @Test
  void aBufferThatIsTooLargeLeavesNothing() {
    try (Buffer buffer = new Buffer()) {
      buffer.ofSize(10);
      assertThatThrownBy(() -> buffer.ofSize(1L << 60)).isInstanceOf(OutOfMemoryError.class);
      assertThat(buffer.ofSize(20).byteSize()).isEqualTo(20);
    }
  }

  @Test
  void closingDoesNotLeaveMemoryOfALaterAllocation() {
    Buffer buffer = new Buffer();
    buffer.close();
    assertThat(buffer.ofSize(10).scope().isAlive()).isFalse();
  }
}
