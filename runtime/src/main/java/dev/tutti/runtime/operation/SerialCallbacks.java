package dev.tutti.runtime.operation;

import dev.tutti.spi.Time;
import java.util.ArrayDeque;
import java.util.Queue;
import org.jspecify.annotations.Nullable;

/**
 * Runs user callbacks one after another, on a thread that exists only while there are callbacks.
 */
final class SerialCallbacks implements AutoCloseable {
  private static final long IDLE_NANOS = 1_000_000_000;

  private final String threadName;
  private final Time time;
  private final Queue<Runnable> callbacks = new ArrayDeque<>();
  private boolean hasThread;
  private boolean closed;

  SerialCallbacks(String threadName, Time time) {
    this.threadName = threadName;
    this.time = time;
  }

  synchronized void add(Runnable callback) {
    if (closed) {
      return;
    }
    callbacks.add(callback);
    if (hasThread) {
      notifyAll();
    } else {
      hasThread = true;
      Thread _ = time.start(threadName, this::run);
    }
  }

  private void run() {
    boolean done = false;
    try {
      for (Runnable next = next(); next != null; next = next()) {
        next.run();
      }
      done = true;
    } finally {
      if (!done) {
        replace();
      }
    }
  }

  /** Lets another thread go on where a callback ended this one. */
  private synchronized void replace() {
    hasThread = !callbacks.isEmpty();
    if (hasThread) {
      Thread _ = time.start(threadName, this::run);
    }
  }

  /** Returns the next callback, or null if none came for a second or none will come. */
  private synchronized @Nullable Runnable next() {
    // A callback may leave its thread interrupted, which does not concern the next one.
    boolean _ = Thread.interrupted();
    long deadline = time.nanoTime() + IDLE_NANOS;
    while (callbacks.isEmpty() && !closed) {
      long left = deadline - time.nanoTime();
      if (left <= 0) {
        break;
      }
      try {
        time.await(this, left);
      } catch (InterruptedException e) {
        // The interrupt was meant for a callback that has ended.
      }
    }
    Runnable next = callbacks.poll();
    hasThread = next != null;
    return next;
  }

  /** Runs the callbacks that were added; later ones are dropped. */
  @Override
  public synchronized void close() {
    closed = true;
    notifyAll();
  }
}
