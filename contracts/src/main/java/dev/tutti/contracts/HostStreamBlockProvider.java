package dev.tutti.contracts;

import dev.tutti.Device;
import dev.tutti.StreamBlock;
import dev.tutti.StreamBlockStatus;
import dev.tutti.spi.StreamBlockProvider;
import java.time.Duration;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;

/**
 * A provider of stream blocks for {@link HostStream}. It is not registered as a service: a test
 * that uses it names it in its own {@code META-INF/services}.
 */
public final class HostStreamBlockProvider implements StreamBlockProvider {
  /** The kind of device. */
  public static final String DEVICE_TYPE = "hoststream";

  /** Creates a provider. */
  public HostStreamBlockProvider() {}

  @Override
  public int spiVersion() {
    return SPI_VERSION;
  }

  @Override
  public String deviceType() {
    return DEVICE_TYPE;
  }

  @Override
  public StreamBlock block(Duration timeout) {
    if (timeout.isNegative()) {
      throw new IllegalArgumentException("timeout must not be negative, but is " + timeout);
    }
    Block block = new Block(timeout);
    HostStream.current().enqueue(block);
    return block;
  }

  @Override
  public StreamBlock block(Device device, Duration timeout) {
    if (device.index() != 0) {
      throw new IndexOutOfBoundsException("no device " + device + "; there is one");
    }
    return block(timeout);
  }

  /**
   * A block, and the task that blocks; the timeout counts from when the stream reaches the block.
   */
  private static final class Block implements StreamBlock, Runnable {
    private final CountDownLatch released = new CountDownLatch(1);
    private final Duration timeout;
    private volatile StreamBlockStatus status = StreamBlockStatus.UNKNOWN;

    Block(Duration timeout) {
      this.timeout = timeout;
    }

    @Override
    public void run() {
      status = StreamBlockStatus.RUNNING;
      status = isReleasedInTime() ? StreamBlockStatus.ABORTED : StreamBlockStatus.TIMED_OUT;
    }

    private boolean isReleasedInTime() {
      try {
        if (timeout.isZero()) {
          released.await();
          return true;
        }
        return released.await(timeout.toNanos(), TimeUnit.NANOSECONDS);
      } catch (InterruptedException e) {
        Thread.currentThread().interrupt();
        return true;
      }
    }

    @Override
    public StreamBlockStatus status() {
      return status;
    }

    @Override
    public void release() {
      released.countDown();
    }

    @Override
    public void close() {
      release();
    }
  }
}
