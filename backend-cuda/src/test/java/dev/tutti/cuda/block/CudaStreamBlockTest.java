package dev.tutti.cuda.block;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.tutti.BackendException;
import dev.tutti.Device;
import dev.tutti.StreamBlock;
import dev.tutti.StreamBlockStatus;
import dev.tutti.cuda.Cuda;
import dev.tutti.cuda.CudaException;
import dev.tutti.cuda.CudaStream;
import dev.tutti.cuda.FakeMachine;
import dev.tutti.cuda.Until;
import dev.tutti.cuda.access.Parts;
import dev.tutti.cuda.driver.FakeCudaDriver;
import java.time.Duration;
import java.util.concurrent.CountDownLatch;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

class CudaStreamBlockTest {
  private static final Duration UNBOUNDED = Duration.ZERO;
  private static final int LAUNCH_FAILED = 719;

  private final FakeMachine machine = new FakeMachine(2);
  private final FakeCudaDriver fake = machine.fake;
  private final Cuda cuda = machine.cuda;
  private final CudaStreamBlockProvider provider = new CudaStreamBlockProvider(() -> cuda);

  @AfterEach
  void close() {
    machine.close();
  }

  @Test
  void aBlockTakesOneLaunchAndOneEvent() {
    provider.block(UNBOUNDED).close();
    fake.clearCalls();
    provider.block(UNBOUNDED).close();
    assertThat(fake.calls("cuLaunchKernel", "cuEventRecord", "cuMemHostAlloc", "cuModuleLoadData"))
        .hasSize(2)
        .satisfies(
            calls -> {
              assertThat(calls.get(0)).isEqualTo("cuLaunchKernel tutti_stream_block 1x1 0x0");
              assertThat(calls.get(1)).startsWith("cuEventRecord ");
            });
  }

  @Test
  void theCurrentStreamOfTheCurrentDeviceIsBlocked() {
    CudaStream stream = cuda.device(1).poolStream();
    StreamBlock block;
    try (CudaStream.Scope _ = stream.use()) {
      block = provider.block(UNBOUNDED);
    }
    Until.holds("the start", () -> block.status() == StreamBlockStatus.RUNNING);
    assertThat(stream.isIdle()).isFalse();
    assertThat(cuda.device(1).defaultStream().isIdle()).isTrue();
    assertThat(cuda.currentStream().isIdle()).isTrue();
    block.close();
    Until.holds("the release", stream::isIdle);
  }

  @Test
  void theCurrentStreamOfANamedDeviceIsBlocked() {
    CudaStream named = cuda.device(1).poolStream();
    StreamBlock block;
    try (CudaStream.Scope _ = named.use();
        CudaStream.Scope _ = cuda.device(0).poolStream().use()) {
      block = provider.block(Device.cuda(1), UNBOUNDED);
      assertThat(cuda.currentDevice().index()).isZero();
      assertThat(cuda.currentStream().isIdle()).isTrue();
    }
    Until.holds("the start", () -> block.status() == StreamBlockStatus.RUNNING);
    assertThat(named.isIdle()).isFalse();
    block.close();
    Until.holds("the release", named::isIdle);
    assertThatThrownBy(() -> provider.block(Device.cuda(2), UNBOUNDED))
        .isInstanceOf(IndexOutOfBoundsException.class)
        .hasMessage("no device cuda:2; devices that this process may use: 2");
  }

  @Test
  void theWordsAreUsedAgainOnlyWhenTheKernelEnded() {
    CudaStream stream = cuda.currentStream();
    CountDownLatch held = machine.hold(stream);
    long first = block(stream).words().address();
    BlockState second = block(stream);
    assertThat(second.words().address()).as("while the first waits").isNotEqualTo(first);
    second.close();
    held.countDown();
    Until.holds("the end of the kernels", stream::isIdle);
    BlockState third = block(stream);
    assertThat(third.words().address()).isIn(first, second.words().address());
    third.close();
  }

  /** Launches a block that is closed immediately and returns its state. */
  private BlockState block(CudaStream stream) {
    BlockState state = new BlockState(stream.device());
    Parts.of(stream.device()).pinned().useOn(state.words(), stream.handle());
    state.close();
    return state;
  }

  @Test
  void aLaunchThatFailsBlocksNothing() {
    provider.block(UNBOUNDED).close();
    int used = Parts.of(cuda.device(0)).pinned().blocksInUse();
    fake.failOn("cuLaunchKernel", 1, LAUNCH_FAILED);
    assertThatThrownBy(() -> provider.block(UNBOUNDED))
        .isInstanceOfSatisfying(
            CudaException.class, e -> assertThat(e.code()).isEqualTo(LAUNCH_FAILED))
        .hasMessage("cuLaunchKernel failed: CUDA_ERROR_719 (719)");
    assertThat(Parts.of(cuda.device(0)).pinned().blocksInUse()).isEqualTo(used);
    assertThat(Parts.of(cuda).openBlocks().count()).isZero();
    Until.holds("the stream to go on", cuda.currentStream()::isIdle);
  }

  @Test
  void aKernelThatCannotBeLoadedBlocksNothing() {
    fake.failOn("cuModuleGetFunction", 1, 500);
    assertThatThrownBy(() -> provider.block(UNBOUNDED)).isInstanceOf(CudaException.class);
    assertThat(fake.calls("cuLaunchKernel", "cuMemHostAlloc")).isEmpty();
    provider.block(UNBOUNDED).close();
  }

  @Test
  void aBlockWhoseUseCannotBeRecordedIsReleased() {
    provider.block(UNBOUNDED).close();
    Until.holds("the end", cuda.currentStream()::isIdle);
    fake.failOn("cuEventRecord", 1, LAUNCH_FAILED);
    assertThatThrownBy(() -> provider.block(UNBOUNDED)).isInstanceOf(CudaException.class);
    Until.holds("the stream to go on", cuda.currentStream()::isIdle);
    assertThat(Parts.of(cuda.device(0)).pinned().blocksInUse())
        .as("words that nobody gets again")
        .isOne();
  }

  @Test
  void abandonedWordsAreNeverUsedAgain() {
    BlockState state = new BlockState(cuda.device(0));
    Parts.of(cuda).openBlocks().add(state);
    state.abandon();
    state.run();
    assertThat(Parts.of(cuda.device(0)).pinned().blocksInUse()).isOne();
    assertThat(Parts.of(cuda).openBlocks().count()).isZero();
    assertThat(new BlockState(cuda.device(0)).address()).isNotEqualTo(state.address());
  }

  @Test
  void aBlockThatNobodyCanReachIsReleased() {
    CudaStream stream = cuda.currentStream();
    assertThat(provider.block(UNBOUNDED).status()).isNotNull();
    Until.holds(
        "the release by the collector",
        () -> {
          System.gc();
          return stream.isIdle() && Parts.of(cuda).openBlocks().count() == 0;
        });
  }

  @Test
  void theEndOfTheDriverReleasesAllBlocks() {
    StreamBlock block = provider.block(UNBOUNDED);
    Until.holds("the start", () -> block.status() == StreamBlockStatus.RUNNING);
    machine.closeDriver();
    assertThat(block.status()).isEqualTo(StreamBlockStatus.RUNNING);
    block.release();
    block.close();
  }

  @Test
  void aStreamThatIsRecordedIsNotBlocked() {
    CudaStream stream = cuda.device(0).poolStream();
    try (CudaStream.Scope _ = stream.use()) {
      fake.driver().graphs().beginCapture(stream.handle());
      assertThatThrownBy(() -> provider.block(UNBOUNDED))
          .isInstanceOf(IllegalStateException.class)
          .hasMessageContaining("captured into a graph");
      fake.driver().graphs().destroy(fake.driver().graphs().endCapture(stream.handle()));
    }
    assertThat(fake.calls("cuLaunchKernel")).isEmpty();
  }

  @Test
  void timeoutsAreNeverShorterThanAsked() {
    assertThat(CudaStreamBlock.millis(Duration.ZERO)).isZero();
    assertThat(CudaStreamBlock.millis(Duration.ofNanos(1))).isEqualTo(1);
    assertThat(CudaStreamBlock.millis(Duration.ofMillis(20))).isEqualTo(20);
    assertThat(CudaStreamBlock.millis(Duration.ofNanos(20_000_001))).isEqualTo(21);
    assertThat(CudaStreamBlock.millis(Duration.ofSeconds(Long.MAX_VALUE)))
        .isEqualTo(Duration.ofDays(36_500).toMillis());
  }

  @Test
  void whatIsMissingIsSaid() {
    CudaStreamBlockProvider broken =
        new CudaStreamBlockProvider(
            () -> {
              throw new BackendException("no NVIDIA driver");
            });
    assertThatThrownBy(() -> broken.block(UNBOUNDED)).hasMessage("no NVIDIA driver");
    assertThatThrownBy(() -> broken.block(Duration.ofMillis(-1)))
        .isInstanceOf(IllegalArgumentException.class);
  }
}
