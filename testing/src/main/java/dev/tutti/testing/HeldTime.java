package dev.tutti.testing;

import dev.tutti.Incubating;
import dev.tutti.spi.ForwardingTime;
import dev.tutti.spi.Time;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.Lock;

/**
 * The time of this machine with a clock that a test can stop, so that no deadline passes before all
 * ranks are where the test needs them. Hand it to {@link
 * dev.tutti.fake.ThreadedWorld#withTime(Time)} or {@link dev.tutti.GroupOptions#withTime(Time)}.
 * Backends that read another clock, as <i>cuda</i> does for work on its devices, do not notice.
 * Safe for use by multiple threads.
 */
@Incubating
public final class HeldTime extends ForwardingTime {
  private long lostNanos;
  private boolean isHeld;
  private long heldAt;

  /** Creates a time whose clock runs. */
  public HeldTime() {
    super(Time.SYSTEM);
  }

  /** Stops the clock; has no effect if it stands. */
  public synchronized void hold() {
    heldAt = nanoTime();
    isHeld = true;
  }

  /** Lets the clock go on from where it stands; has no effect if it runs. */
  public synchronized void release() {
    if (isHeld) {
      isHeld = false;
      lostNanos = super.nanoTime() - heldAt;
    }
  }

  @Override
  public synchronized long nanoTime() {
    return isHeld ? heldAt : super.nanoTime() - lostNanos;
  }

  @Override
  public long await(Lock lock, Condition condition, long nanos) throws InterruptedException {
    long end = nanoTime() + nanos;
    long _ = super.await(lock, condition, nanos);
    return end - nanoTime();
  }

  @Override
  public boolean tryLock(Lock lock, long nanos) throws InterruptedException {
    long end = nanoTime() + nanos;
    while (!super.tryLock(lock, end - nanoTime())) {
      if (end - nanoTime() <= 0) {
        return false;
      }
    }
    return true;
  }

  @Override
  public boolean join(Thread thread, long nanos) throws InterruptedException {
    long end = nanoTime() + nanos;
    while (!super.join(thread, end - nanoTime())) {
      if (end - nanoTime() <= 0) {
        return false;
      }
    }
    return true;
  }
}
