package dev.tutti.contracts;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.tutti.Device;
import dev.tutti.StreamBlock;
import dev.tutti.StreamBlockStatus;
import dev.tutti.spi.DeviceEvent;
import java.time.Duration;
import org.junit.jupiter.api.Test;

/** Blocks the host stream as a user does; the stream's provider is a service of the tests. */
class StreamBlocksTest {
  private static final Device DEVICE = new Device(HostStreamBlockProvider.DEVICE_TYPE, 0);

  @Test
  void aStreamIsHeldUntilTheUserLetsGo() {
    try (HostStream stream = new HostStream()) {
      stream.makeCurrent();
      StreamBlock block = StreamBlock.block(DEVICE, Duration.ZERO);
      DeviceEvent after = stream.record();
      Waiting.until("the start", () -> block.status() == StreamBlockStatus.RUNNING);
      assertThat(after.isReached()).isFalse();
      block.release();
      Waiting.until("the release", after::isReached);
      assertThat(block.status()).isEqualTo(StreamBlockStatus.ABORTED);
    }
  }

  @Test
  void aDeviceWithoutStreamBlocksIsNamed() {
    assertThatThrownBy(() -> StreamBlock.block(Device.CPU, Duration.ZERO))
        .isInstanceOf(UnsupportedOperationException.class)
        .hasMessageStartingWith("no stream block for device type 'cpu'; found for [hoststream]");
  }
}
