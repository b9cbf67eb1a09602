package dev.tutti.store.table;

import dev.tutti.cpu.wait.Uninterrupted;
import dev.tutti.spi.Time;
import java.util.concurrent.locks.ReentrantLock;

/** Takes locks for calls that an interrupt must not end. */
public final class Locks {
  private Locks() {}

  /**
   * Takes a lock; an interrupt during the wait is kept for later.
   *
   * @param time by which it waits
   * @param lock the lock
   * @param deadline when to give up, in terms of the clock of {@code time}
   * @return whether the lock was taken
   */
  public static boolean acquire(Time time, ReentrantLock lock, long deadline) {
    return Uninterrupted.await(
        () -> lock.tryLock() || time.tryLock(lock, deadline - time.nanoTime()));
  }
}
