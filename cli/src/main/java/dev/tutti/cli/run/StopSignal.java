package dev.tutti.cli.run;

import dev.tutti.StoreException;
import dev.tutti.cli.process.LaunchException;
import org.jspecify.annotations.Nullable;

/** The first signal that a launcher got, which ends its waits for other nodes. */
final class StopSignal {
  private final Object lock = new Object();

  /** The number of the signal, or 0. */
  private volatile int number;

  /** The thread that waits for other nodes, which a signal interrupts. */
  private @Nullable Thread waiting;

  /** A wait for other nodes. */
  interface Meeting<T> {
    T await() throws InterruptedException;
  }

  /** Notes a signal; called from any thread. */
  void arrive(int arrived) {
    synchronized (lock) {
      if (number == 0) {
        number = arrived;
      }
      if (waiting != null) {
        waiting.interrupt();
      }
    }
  }

  /** Returns the number of the first signal, or 0 if there was none. */
  int number() {
    return number;
  }

  /** Returns whether there was a signal. */
  boolean hasArrived() {
    return number != 0;
  }

  /** Waits for other nodes; returns null if a signal arrived before the wait ended. */
  <T> @Nullable T unlessArrived(Meeting<T> meeting) throws InterruptedException {
    synchronized (lock) {
      if (number != 0) {
        return null;
      }
      waiting = Thread.currentThread();
    }
    try {
      T result = meeting.await();
      return number == 0 ? result : null;
    } catch (StoreException | LaunchException | InterruptedException e) {
      if (number == 0) {
        throw e;
      }
      return null;
    } finally {
      synchronized (lock) {
        waiting = null;
        if (number != 0) {
          // The interrupt was meant for this wait.
          boolean _ = Thread.interrupted();
        }
      }
    }
  }
}
