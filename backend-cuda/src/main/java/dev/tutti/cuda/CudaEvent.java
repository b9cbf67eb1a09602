package dev.tutti.cuda;

import dev.tutti.cpu.wait.WaitStrategy;
import dev.tutti.cuda.driver.CudaDriver;
import dev.tutti.cuda.driver.EventPool;
import dev.tutti.spi.DeviceEvent;
import org.jspecify.annotations.Nullable;

/**
 * A point in a stream. What the driver has for it is used for the next point as soon as somebody
 * saw this one reached, or closed it. Any thread may call any method.
 */
public final class CudaEvent implements DeviceEvent, AutoCloseable {
  private static final long SPIN_NANOS = 20_000;
  private static final long PARK_NANOS = 20_000;

  private final CudaDevice device;
  private final EventPool pool;
  private final @Nullable CudaStream stream;
  private long handle;
  private boolean reached;

  /** Tells whether {@code OpenEvents} has this event; used by that alone. */
  boolean isListed;

  /** Creates a point that is nowhere yet, for {@link #recordIn}. */
  CudaEvent(CudaDevice device) {
    this(device, device.events(), null, 0);
  }

  CudaEvent(CudaDevice device, EventPool pool, @Nullable CudaStream stream, long handle) {
    this.device = device;
    this.pool = pool;
    this.stream = stream;
    this.handle = handle;
  }

  /** Returns the device. */
  public CudaDevice device() {
    return device;
  }

  /** Returns the stream that it marks for good, or null. */
  @Nullable CudaStream stream() {
    return stream;
  }

  /**
   * Marks where a stream is now, instead of what this marked before. The device's context is
   * current. Allocates nothing in the long run.
   */
  synchronized void recordIn(long stream) {
    if (handle == 0) {
      handle = pool.acquire();
    }
    reached = false;
    device.context().driver().events().record(handle, stream);
  }

  /**
   * {@inheritDoc}
   *
   * @throws CudaException if the device failed
   * @throws IllegalStateException if the event was closed before anybody saw it reached
   */
  @Override
  public synchronized boolean isReached() {
    if (reached) {
      return true;
    }
    requireOpen();
    if (device.context().isReached(handle)) {
      reached = true;
      giveBack();
    }
    return reached;
  }

  @Override
  public void orderCurrentStream() {
    order(device.currentStream());
  }

  synchronized void order(CudaStream stream) {
    if (reached) {
      return;
    }
    requireOpen();
    stream.device().context().enter();
    CudaDriver driver = device.context().driver();
    driver.streams().waitFor(stream.handle(), handle);
  }

  @Override
  public boolean awaitReached(long deadlineNanos) {
    WaitStrategy wait = WaitStrategy.spinning(SPIN_NANOS, PARK_NANOS);
    while (!isReached()) {
      if (wait.now() - deadlineNanos >= 0) {
        return false;
      }
      wait.rest();
    }
    return true;
  }

  /** Tells whether somebody saw it reached, without a look at the device. */
  synchronized boolean isKnownReached() {
    return reached;
  }

  /** Takes it for reached without a look, as a later point of the device is. */
  synchronized void takeForReached() {
    reached = true;
    giveBack();
  }

  /** Gives the event up, reached or not; streams that were ordered behind it stay so. */
  @Override
  public synchronized void close() {
    giveBack();
  }

  @Override
  public void release() {
    close();
  }

  private void giveBack() {
    if (handle != 0) {
      pool.release(handle);
      handle = 0;
    }
  }

  private void requireOpen() {
    if (handle == 0) {
      throw new IllegalStateException("the event was closed");
    }
  }
}
