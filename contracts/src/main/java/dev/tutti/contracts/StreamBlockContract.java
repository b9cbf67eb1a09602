package dev.tutti.contracts;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.tutti.Device;
import dev.tutti.StreamBlock;
import dev.tutti.StreamBlockStatus;
import dev.tutti.spi.DeviceEvent;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.Timeout.ThreadMode;

/**
 * Tests that stream blocks fulfill the contract of {@link StreamBlock}.
 *
 * <p>A third party extends this class and implements one method, {@link #fixture()}. If there is no
 * device, the method throws a {@code TestAbortedException} with the reason. The current stream may
 * be specific to a thread, so each test runs on the thread that created its fixture.
 */
@Timeout(value = 300, threadMode = ThreadMode.SAME_THREAD)
public abstract class StreamBlockContract {
  private static final Duration UNBOUNDED = Duration.ZERO;
  private static final Duration A_WHILE = Duration.ofMillis(100);

  private final List<StreamBlock> blocks = new ArrayList<>();
  private StreamBlockFixture fixture;
  private boolean opened;

  /** Creates the suite; JUnit calls this once for each test. */
  @SuppressWarnings("NullAway.Init")
  protected StreamBlockContract() {}

  /**
   * Creates a device without a current stream.
   *
   * @throws Exception if the device cannot be created, which fails the test
   */
  protected abstract StreamBlockFixture fixture() throws Exception;

  @BeforeEach
  @Timeout(value = 300, threadMode = ThreadMode.SAME_THREAD)
  final void open() throws Exception {
    fixture = fixture();
    opened = true;
    fixture.useNewStream();
  }

  @AfterEach
  @Timeout(value = 300, threadMode = ThreadMode.SAME_THREAD)
  final void close() {
    blocks.forEach(StreamBlock::close);
    if (opened) {
      fixture.close();
    }
  }

  @Test
  void aBlockHoldsItsStreamUntilItIsReleased() {
    DeviceEvent before = fixture.record();
    StreamBlock block = block(UNBOUNDED);
    DeviceEvent after = fixture.record();
    assertReached(before);
    Waiting.until("the start", () -> block.status() == StreamBlockStatus.RUNNING);
    assertHeld(after);
    block.release();
    assertReached(after);
    assertThat(block.status()).isEqualTo(StreamBlockStatus.ABORTED);
  }

  @Test
  void aTimeoutReleasesTheStream() {
    Duration timeout = Duration.ofMillis(150);
    long start = System.nanoTime();
    StreamBlock block = block(timeout);
    DeviceEvent after = fixture.record();
    assertReached(after);
    assertThat(Duration.ofNanos(System.nanoTime() - start)).isGreaterThanOrEqualTo(timeout);
    assertThat(block.status()).isEqualTo(StreamBlockStatus.TIMED_OUT);
    block.release();
    assertThat(block.status()).as("after a late release").isEqualTo(StreamBlockStatus.TIMED_OUT);
  }

  @Test
  void aReleaseComesBeforeATimeout() {
    StreamBlock block = block(Duration.ofSeconds(50));
    DeviceEvent after = fixture.record();
    block.release();
    assertReached(after);
    assertThat(block.status()).isEqualTo(StreamBlockStatus.ABORTED);
  }

  @Test
  void aBlockReleasedBeforeItsStartDoesNotHold() {
    StreamBlock first = block(UNBOUNDED);
    StreamBlock second = block(UNBOUNDED);
    DeviceEvent after = fixture.record();
    Waiting.until("the start", () -> first.status() == StreamBlockStatus.RUNNING);
    assertThat(second.status()).isEqualTo(StreamBlockStatus.UNKNOWN);
    second.release();
    assertHeld(after);
    assertThat(first.status()).isEqualTo(StreamBlockStatus.RUNNING);
    assertThat(second.status()).isEqualTo(StreamBlockStatus.UNKNOWN);
    first.release();
    assertReached(after);
    assertThat(first.status()).isEqualTo(StreamBlockStatus.ABORTED);
    assertThat(second.status()).isEqualTo(StreamBlockStatus.ABORTED);
  }

  @Test
  void aBlockMayBeClosedBeforeItsStart() {
    StreamBlock first = block(UNBOUNDED);
    StreamBlock second = block(UNBOUNDED);
    DeviceEvent after = fixture.record();
    second.close();
    assertHeld(after);
    first.release();
    assertReached(after);
  }

  @Test
  void closeReleasesARunningBlock() {
    StreamBlock block = block(UNBOUNDED);
    DeviceEvent after = fixture.record();
    Waiting.until("the start", () -> block.status() == StreamBlockStatus.RUNNING);
    block.close();
    block.close();
    block.release();
    assertReached(after);
  }

  @Test
  void anyThreadMayRelease() throws Exception {
    StreamBlock block = block(UNBOUNDED);
    DeviceEvent after = fixture.record();
    Calls.Action release =
        () -> {
          block.release();
          block.status();
        };
    Calls.runAll(Collections.nCopies(8, release));
    assertReached(after);
    assertThat(block.status()).isEqualTo(StreamBlockStatus.ABORTED);
  }

  @Test
  void streamsOfOtherThreadsGoOn() throws Exception {
    StreamBlock block = block(UNBOUNDED);
    DeviceEvent held = fixture.record();
    Calls.Action other =
        () -> {
          fixture.useNewStream();
          assertReached(fixture.record());
        };
    Calls.runAll(List.of(other));
    assertHeld(held);
    block.release();
    assertReached(held);
  }

  @Test
  void aBlockIsMadeWithoutWaitingForTheStream() {
    StreamBlock first = block(UNBOUNDED);
    List<StreamBlock> more = new ArrayList<>();
    for (int i = 0; i < 20; i++) {
      more.add(block(UNBOUNDED));
    }
    DeviceEvent after = fixture.record();
    assertThat(first.status()).isIn(StreamBlockStatus.UNKNOWN, StreamBlockStatus.RUNNING);
    more.forEach(StreamBlock::release);
    assertHeld(after);
    first.release();
    assertReached(after);
  }

  @Test
  void blocksMayFollowEachOtherWithoutEnd() {
    for (int i = 0; i < 300; i++) {
      try (StreamBlock block = fixture.provider().block(Duration.ofSeconds(50))) {
        block.release();
      }
    }
    assertReached(fixture.record());
  }

  @Test
  void aNegativeTimeoutIsRefused() {
    assertThatIllegalArgumentException()
        .isThrownBy(() -> fixture.provider().block(Duration.ofMillis(-1)))
        .withMessageContaining("timeout");
    assertReached(fixture.record());
  }

  @Test
  void aNamedDeviceIsBlocked() {
    Device device = new Device(fixture.provider().deviceType(), 0);
    DeviceEvent before = fixture.record();
    StreamBlock block = fixture.provider().block(device, UNBOUNDED);
    blocks.add(block);
    DeviceEvent after = fixture.record();
    assertReached(before);
    assertHeld(after);
    block.release();
    assertReached(after);
    assertThat(block.status()).isEqualTo(StreamBlockStatus.ABORTED);
    assertThatIllegalArgumentException()
        .isThrownBy(() -> fixture.provider().block(device, Duration.ofMillis(-1)))
        .withMessageContaining("timeout");
    Device absent = new Device(device.type(), 1_000_000);
    assertThatThrownBy(() -> fixture.provider().block(absent, UNBOUNDED))
        .isInstanceOf(IndexOutOfBoundsException.class)
        .hasMessageContaining(absent.toString());
  }

  @Test
  void theProviderNamesItsDevice() {
    assertThat(fixture.provider().deviceType()).matches("[a-z][a-z0-9_]*");
  }

  private StreamBlock block(Duration timeout) {
    StreamBlock block = fixture.provider().block(timeout);
    blocks.add(block);
    return block;
  }

  private static void assertHeld(DeviceEvent event) {
    assertThat(event.awaitReached(System.nanoTime() + A_WHILE.toNanos()))
        .as("whether the stream passed a block")
        .isFalse();
    assertThat(event.isReached()).isFalse();
  }

  private static void assertReached(DeviceEvent event) {
    assertThat(event.awaitReached(System.nanoTime() + Waiting.LONG.toNanos()))
        .as("whether the stream continues")
        .isTrue();
    assertThat(event.isReached()).isTrue();
  }
}
