package dev.tutti.cuda;

import dev.tutti.cpu.wait.WaitStrategy;
import dev.tutti.cuda.access.EventMark;
import dev.tutti.cuda.access.Facade;
import dev.tutti.cuda.access.Parts;
import dev.tutti.cuda.memory.BlockStream;
import dev.tutti.spi.DeviceEvent;
import dev.tutti.spi.Time;
import org.jspecify.annotations.Nullable;

/**
 * A point in a stream. The underlying driver event is reused for another point once this point was
 * seen to be reached, or is closed. All methods may be called from any thread.
 */
public final class CudaEvent extends Facade<EventMark> implements DeviceEvent, AutoCloseable {
  private static final long SPIN_NANOS = 20_000;
  private static final long PARK_NANOS = 20_000;

  private final CudaDevice device;

  /**
   * Creates an event.
   *
   * @param stream the stream that it marks permanently, or null
   * @param handle the driver's event, or 0 if it marks no point yet
   */
  CudaEvent(CudaDevice device, @Nullable BlockStream stream, long handle) {
    super(new EventMark(device.context(), device.events(), stream, handle));
    this.device = device;
  }

  /** Returns the device. */
  public CudaDevice device() {
    return device;
  }

  /**
   * {@inheritDoc}
   *
   * @throws CudaException if the device failed
   * @throws IllegalStateException if the event was closed before it was seen to be reached
   */
  @Override
  public boolean isReached() {
    return Parts.of(this).isReached();
  }

  @Override
  public void orderCurrentStream() {
    Parts.of(this).order(device.currentStream().forBlocks());
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

  /**
   * Gives up the event, whether or not it was reached; streams that were ordered after it remain
   * so.
   */
  @Override
  public void close() {
    Parts.of(this).close();
  }

  @Override
  public void release() {
    close();
  }
}
