package dev.tutti.cuda.block;

import dev.tutti.StreamBlock;
import dev.tutti.StreamBlockStatus;
import dev.tutti.cuda.CudaDevice;
import dev.tutti.cuda.CudaStream;
import dev.tutti.cuda.access.Parts;
import dev.tutti.cuda.driver.CudaDriver;
import dev.tutti.cuda.driver.LaunchParameters;
import dev.tutti.kernels.Kernels;
import java.lang.ref.Cleaner;
import java.time.Duration;

/**
 * A stream block: a single-thread kernel that holds a stream and polls, every millisecond, a word
 * that the host writes (c10d: {@code StreamBlock.cu}). Meanwhile the kernel occupies a slot on one
 * multiprocessor, and everything that waits until the device is idle waits for it.
 */
public final class CudaStreamBlock implements StreamBlock {
  public static final String KERNEL = Kernels.streamBlock().name();

  private static final Cleaner CLEANER = Cleaner.create();
  private static final long LONGEST_MILLIS = Duration.ofDays(36_500).toMillis();

  private final BlockState state;
  private final Cleaner.Cleanable cleanable;

  private CudaStreamBlock(BlockState state) {
    this.state = state;
    this.cleanable = CLEANER.register(this, state);
  }

  /**
   * Blocks a stream. Everything that can fail does so before the launch, or leaves the stream
   * released.
   *
   * @param stream the stream, which must not be in graph capture
   * @param millis the longest time to hold the stream, from {@link #millis}; zero means forever
   */
  static CudaStreamBlock launch(CudaStream stream, long millis) {
    CudaDevice device = stream.device();
    if (stream.isCapturing()) {
      throw new IllegalStateException(
          stream + " is being captured into a graph, which would be blocked again at each replay");
    }
    long function = Parts.of(device).kernels().function(KERNEL);
    LaunchParameters parameters = new LaunchParameters(2);
    BlockState state = new BlockState(device);
    Parts.of(device).openBlocks().add(state);
    Parts.of(device).multiprocessors().enter();
    CudaStreamBlock block = new CudaStreamBlock(state);
    parameters.set(0, state.address());
    parameters.set(1, millis);
    CudaDriver driver = Parts.of(device).context().driver();
    boolean launched = false;
    try {
      parameters.launch(driver.kernels(), function, 1, 1, stream.handle());
      launched = true;
      Parts.of(device).pinned().useOn(state.words(), stream.handle());
      return block;
    } catch (RuntimeException | Error e) {
      if (launched) {
        state.abandon();
      } else {
        block.close();
      }
      throw e;
    }
  }

  /**
   * Returns a timeout in milliseconds, rounded up.
   *
   * @throws IllegalArgumentException if it is negative
   */
  public static long millis(Duration timeout) {
    if (timeout.isNegative()) {
      throw new IllegalArgumentException("timeout must not be negative, but is " + timeout);
    }
    if (timeout.toSeconds() > LONGEST_MILLIS / 1000) {
      return LONGEST_MILLIS;
    }
    return timeout.plusNanos(999_999).toMillis();
  }

  @Override
  public StreamBlockStatus status() {
    return state.status();
  }

  @Override
  public void release() {
    state.release();
  }

  @Override
  public void close() {
    cleanable.clean();
  }
}
