package dev.tutti.shared;

import dev.tutti.spi.DeviceEvent;
import dev.tutti.spi.Time;

/**
 * An event that never occurs, on a device that reports this only when asked to wait.
 *
 * @param time by which it waits
 */
public record NeverEvent(Time time) implements DeviceEvent {
  @Override
  public boolean isReached() {
    return false;
  }

  @Override
  public void orderCurrentStream() {}

  @Override
  public boolean awaitReached(long deadlineNanos) {
    long left = deadlineNanos - time.nanoTime();
    while (left > 0 && !Thread.currentThread().isInterrupted()) {
      time.park(this, left);
      left = deadlineNanos - time.nanoTime();
    }
    return false;
  }
}
