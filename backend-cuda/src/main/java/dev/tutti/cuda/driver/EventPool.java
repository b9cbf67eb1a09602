package dev.tutti.cuda.driver;

import java.util.Arrays;

/**
 * Keeps events for use again, since to make one costs more than to record it. Any thread may call
 * any method, in the context of the device.
 */
public final class EventPool {
  private final EventCalls calls;
  private long[] free = new long[16];
  private int freeCount;
  private int madeCount;
  private boolean closed;

  /**
   * Creates a pool that has no events yet.
   *
   * @param calls makes events
   */
  public EventPool(EventCalls calls) {
    this.calls = calls;
  }

  /** Returns an event that nobody else has. */
  public synchronized long acquire() {
    if (closed) {
      throw new IllegalStateException("the device was closed");
    }
    if (freeCount > 0) {
      return free[--freeCount];
    }
    long event = calls.create(EventCalls.Kind.ORDER);
    madeCount++;
    return event;
  }

  /** Takes an event back, which may be reached or not. */
  public synchronized void release(long event) {
    if (closed) {
      destroy(event);
      return;
    }
    if (freeCount == free.length) {
      free = Arrays.copyOf(free, 2 * freeCount);
    }
    free[freeCount++] = event;
  }

  private void destroy(long event) {
    madeCount--;
    calls.destroy(event);
  }

  /** Returns the number of events that are acquired. */
  public synchronized int inUse() {
    return madeCount - freeCount;
  }

  /** Destroys the free events, and from now on each one that is released. */
  public synchronized void close() {
    closed = true;
    while (freeCount > 0) {
      destroy(free[--freeCount]);
    }
  }
}
