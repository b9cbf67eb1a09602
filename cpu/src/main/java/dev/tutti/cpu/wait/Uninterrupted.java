package dev.tutti.cpu.wait;

import dev.tutti.spi.Time;
import java.io.IOException;
import java.nio.channels.ClosedByInterruptException;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.Lock;

/** Waits, and uses channels, in threads that may be interrupted. */
public final class Uninterrupted {
  private Uninterrupted() {}

  /**
   * Waits once for a signal; to be called in a loop that checks the condition. An interrupt is kept
   * until after the wait; one that comes during the wait counts as a signal.
   *
   * @param time by which it waits
   * @param lock the lock, which the caller holds
   * @param condition a condition of that lock
   * @param deadlineNanos the deadline, in terms of the clock of {@code time}
   * @return false if the deadline has passed
   */
  public static boolean await(Time time, Lock lock, Condition condition, long deadlineNanos) {
    long left = deadlineNanos - time.nanoTime();
    if (left <= 0) {
      return false;
    }
    boolean interrupted = Thread.interrupted();
    try {
      return time.await(lock, condition, left) > 0;
    } catch (InterruptedException e) {
      interrupted = true;
      return true;
    } finally {
      if (interrupted) {
        Thread.currentThread().interrupt();
      }
    }
  }

  /**
   * A wait that an interrupt ends.
   *
   * @param <T> the type of the result
   */
  public interface Wait<T> {
    /** Waits for what is left. */
    T await() throws InterruptedException;
  }

  /**
   * Waits, and continues each time that an interrupt ends the wait; the thread is interrupted
   * afterwards if it was interrupted in the meantime.
   *
   * @param <T> the type of the result
   * @param wait the wait, which keeps its own deadline
   * @return the result of the wait
   */
  public static <T> T await(Wait<T> wait) {
    boolean interrupted = false;
    try {
      while (true) {
        try {
          return wait.await();
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

  /**
   * Parks the calling thread, even if it is interrupted beforehand; preserves its interrupt status.
   *
   * @param time by which it waits
   * @param blocker the object that the thread waits for, for diagnostics
   * @param nanos the maximum time to wait
   */
  public static void park(Time time, Object blocker, long nanos) {
    boolean interrupted = Thread.interrupted();
    if (interrupted) {
      time.park(
          blocker,
          1); // consumes the permit that an interrupt leaves, which would end the next sleep
    }
    time.park(blocker, nanos);
    if (interrupted) {
      Thread.currentThread().interrupt();
    }
  }

  /**
   * Work that opens a channel and uses it.
   *
   * @param <T> the type of the result
   */
  public interface Work<T> {
    /** Does all of the work, from the start. */
    T run() throws IOException;
  }

  /**
   * Does some work, and repeats it each time that an interrupt ends it; the thread is interrupted
   * afterwards if it was interrupted in the meantime.
   *
   * @param <T> the type of the result
   * @param work the work, which opens what it uses and closes it
   * @return the result of the work
   * @throws IOException if the work fails for another reason
   */
  public static <T> T run(Work<T> work) throws IOException {
    boolean interrupted = Thread.interrupted();
    try {
      while (true) {
        try {
          return work.run();
        } catch (ClosedByInterruptException e) {
          interrupted |= Thread.interrupted();
        }
      }
    } finally {
      if (interrupted) {
        Thread.currentThread().interrupt();
      }
    }
  }
}
