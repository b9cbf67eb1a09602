package dev.tutti.gloo.transport;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import org.junit.jupiter.api.Test;

class ViewsTest {
  private static final int BYTES = 1000;

  private final Views views = new Views();
  private final MemorySegment memory = Arena.ofAuto().allocate(BYTES);

  @Test
  void aSegmentKeepsItsBuffer() {
    ByteBuffer first = views.view(memory, 0, 10);
    assertThat(first.remaining()).isEqualTo(10);
    ByteBuffer second = views.view(memory, 100, BYTES);
    assertThat(second).isSameAs(first);
    assertThat(second.position()).isEqualTo(100);
    assertThat(second.remaining()).isEqualTo(BYTES - 100);
  }

  @Test
  void aLongerSegmentAtTheSameAddressIsSeenWhole() {
    views.view(memory.asSlice(0, 100), 0, 100);
    assertThat(views.view(memory, 100, BYTES - 100).remaining()).isEqualTo(BYTES - 100);
    assertThat(views.view(memory.asSlice(0, 100), 50, BYTES).remaining()).isEqualTo(50);
  }

  @Test
  void memoryOfAnotherArenaAtTheSameAddressIsSeen() {
    try (Arena earlier = Arena.ofConfined()) {
      views.view(memory.reinterpret(earlier, null), 0, BYTES).put((byte) 1);
    }
    views.view(memory.reinterpret(Arena.global(), null), 0, BYTES).put((byte) 2);
    assertThat(memory.asByteBuffer().get(0)).isEqualTo((byte) 2);
  }

  @Test
  void whatWasSeenReadOnlyCanBeWritten() {
    assertThat(views.view(memory.asReadOnly(), 0, BYTES).isReadOnly()).isTrue();
    assertThat(views.view(memory, 0, BYTES).isReadOnly()).isFalse();
    assertThat(views.view(memory.asReadOnly(), 0, BYTES).isReadOnly()).isTrue();
  }

  @Test
  void noViewIsEmpty() {
    assertThatThrownBy(() -> views.view(memory, BYTES, 1))
        .isInstanceOf(IndexOutOfBoundsException.class);
  }
}
