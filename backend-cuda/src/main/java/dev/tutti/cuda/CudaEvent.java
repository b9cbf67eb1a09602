package dev.tutti.cuda;

import dev.tutti.cpu.wait.WaitStrategy;
import dev.tutti.cuda.driver.CudaDriver;
import dev.tutti.cuda.driver.EventPool;
import dev.tutti.spi.DeviceEvent;
import dev.tutti.spi.Time;
import org.jspecify.annotations.Nullable;

/**
 * A point in a stream. The underlying driver event is reused for another point once this point was
 * seen to be reached, or is closed. All methods may be called from any thread.
 */
public final class CudaEvent implements DeviceEvent, AutoCloseable {
  private static final long SPIN_NANOS = 20_000;
  private static final long PARK_NANOS = 20_000;

  private final CudaDevice device;
  private final EventPool pool;
  private final @Nullable CudaStream stream;
  private long handle;
  private boolean reached;

  /** Whether {@code OpenEvents} holds this event; accessed only by that class. */
  boolean isListed;

  /** Creates an event that marks no point yet, for {@link #recordIn}. */
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

  /** Returns the stream that this event marks permanently, or null. */
  @Nullable CudaStream stream() {
    return stream;
  }

  /**
   * Marks the current end of a stream's work, replacing any point marked before. Enters the
   * device's context. Allocates nothing in the steady state.
   */
  synchronized void recordIn(long stream) {
    if (handle == 0) {
      handle = pool.acquire();
    }
    reached = false;
    device.context().enter();
    device.context().driver().events().record(handle, stream);
  }

  /**
   * {@inheritDoc}
   *
   * @throws CudaException if the device failed
   * @throws IllegalStateException if the event was closed before it was seen to be reached
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
    WaitStrategy wait = WaitStrategy.spinning(SPIN_NANOS, PARK_NANOS, Time.SYSTEM);
    while (!isReached()) {
      if (wait.now() - deadlineNanos >= 0) {
        return false;
      }
      wait.rest();
    }
    return true;
  }

  /** Tells whether this event was already seen to be reached, without querying the device. */
  synchronized boolean isKnownReached() {
    return reached;
  }

  /**
   * Treats this event as reached without querying it, because a later point on the device has been
   * reached.
   */
  synchronized void takeForReached() {
    reached = true;
    giveBack();
  }

  /**
   * Gives up the event, whether or not it was reached; streams that were ordered after it remain
   * so.
   */
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
