package dev.tutti.cpu.wait;

import dev.tutti.spi.Time;

/** A latch that opens once and stays open. Safe for use by multiple threads. */
public final class Latch {
  private final Time time;
  private boolean isOpen;

  /**
   * Creates a closed latch.
   *
   * @param time by which threads wait for it
   */
  public Latch(Time time) {
    this.time = time;
  }

  /** Opens the latch, which ends all waits. */
  public synchronized void open() {
    isOpen = true;
    notifyAll();
  }

  /**
   * Waits until the latch is open.
   *
   * @param deadlineNanos the deadline, in terms of the clock of the latch's time
   * @return whether it is open
   * @throws InterruptedException if the thread is interrupted while it waits
   */
  public synchronized boolean await(long deadlineNanos) throws InterruptedException {
    while (!isOpen) {
      long left = deadlineNanos - time.nanoTime();
      if (left <= 0) {
        return false;
      }
      time.await(this, left);
    }
    return true;
  }
}
