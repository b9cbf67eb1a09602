package dev.tutti.runtime.operation;

import dev.tutti.spi.DeviceEvent;

/** An event of a device that reaches it when a test says so. */
final class RacedEvent implements DeviceEvent {
  volatile boolean isReached;

  /** How often the event was released, by threads that exclude each other. */
  int releases;

  @Override
  public boolean isReached() {
    return isReached;
  }

  @Override
  public void orderCurrentStream() {}

  @Override
  public boolean awaitReached(long deadlineNanos) {
    while (!isReached && System.nanoTime() - deadlineNanos < 0) {
      Thread.onSpinWait();
    }
    return isReached;
  }

  @Override
  public void release() {
    releases++;
  }
}
