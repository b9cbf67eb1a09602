package dev.tutti.aeron.wire;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayList;
import java.util.List;
import org.agrona.concurrent.UnsafeBuffer;
import org.junit.jupiter.api.Test;

class FrameWriterTest {
  /** Members of a cluster read frames that were written to their logs earlier. */
  @Test
  void framesHaveTheVersionOfThoseInLogs() {
    List<Byte> versions = new ArrayList<>();
    FrameWriter writer =
        new FrameWriter(
            (head, body, at, bytes) -> {
              versions.add(head.getByte(0));
              return 1;
            },
            100,
            1);
    assertThat(writer.write(Protocol.SET, 1, new UnsafeBuffer(new byte[1]), 1, 0)).isNegative();
    assertThat(versions).containsExactly((byte) 1);
  }
}
