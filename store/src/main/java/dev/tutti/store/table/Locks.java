package dev.tutti.store.table;

import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.ReentrantLock;

/** Takes locks for calls that an interrupt must not end. */
public final class Locks {
  private Locks() {}

  /**
   * Takes a lock; an interrupt during the wait is kept for later.
   *
   * @param lock the lock
   * @param deadline when to give up, in terms of {@link System#nanoTime()}
   * @return whether the lock was taken
   */
  public static boolean acquire(ReentrantLock lock, long deadline) {
    boolean interrupted = false;
    try {
      while (true) {
        try {
          return lock.tryLock() || lock.tryLock(deadline - System.nanoTime(), TimeUnit.NANOSECONDS);
        } catch (InterruptedException e) {
          interrupted = true;
        }
      }
    } finally {
      if (interrupted) {
        Thread.currentThread().interrupt();
      }
    }
  }
}
