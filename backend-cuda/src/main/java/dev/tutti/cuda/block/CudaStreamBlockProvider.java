package dev.tutti.cuda.block;

import dev.tutti.Device;
import dev.tutti.StreamBlock;
import dev.tutti.cuda.Cuda;
import dev.tutti.cuda.access.Parts;
import dev.tutti.spi.StreamBlockProvider;
import java.time.Duration;
import java.util.List;
import java.util.Optional;
import java.util.function.Supplier;

/**
 * The provider of stream blocks for {@code cuda}; they hold the calling thread's current stream on
 * its current device.
 */
public final class CudaStreamBlockProvider implements StreamBlockProvider {
  private final Supplier<Cuda> cuda;

  /** Creates the provider; {@link java.util.ServiceLoader} calls this. Loads nothing. */
  public CudaStreamBlockProvider() {
    this(Cuda::get);
  }

  public CudaStreamBlockProvider(Supplier<Cuda> cuda) {
    this.cuda = cuda;
  }

  @Override
  public int spiVersion() {
    return SPI_VERSION;
  }

  @Override
  public String deviceType() {
    return "cuda";
  }

  /**
   * {@inheritDoc}
   *
   * @param timeout the time after which the stream is released at the latest, counted from when the
   *     stream reaches the block and checked every millisecond; zero means never
   * @throws dev.tutti.BackendException if CUDA cannot be used here, or the driver fails; the stream
   *     is then not blocked
   * @throws IllegalArgumentException if the timeout is negative
   * @throws IllegalStateException if the stream is being captured into a graph
   */
  @Override
  public StreamBlock block(Duration timeout) {
    long millis = CudaStreamBlock.millis(timeout);
    return CudaStreamBlock.launch(cuda.get().currentStream(), millis);
  }

  @Override
  public StreamBlock block(Device device, Duration timeout) {
    long millis = CudaStreamBlock.millis(timeout);
    return CudaStreamBlock.launch(cuda.get().device(device.index()).currentStream(), millis);
  }

  @Override
  public Optional<String> unusableReason() {
    return Cuda.unusableReason();
  }

  @Override
  public List<String> findings() {
    return Parts.of(cuda.get()).findings();
  }
}
