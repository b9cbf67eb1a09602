package dev.tutti.cuda.driver;

import java.util.Arrays;

/**
 * Keeps events for use again, since to make one costs more than to record it. Any thread may call
 * any method, in the context of the device.
 */
public final class EventPool {
  private final EventCalls calls;
  private long[] free = new long[16];
  private long[] made = new long[16];
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
    if (madeCount == made.length) {
      made = Arrays.copyOf(made, 2 * madeCount);
    }
    made[madeCount++] = event;
    return event;
  }

  /** Takes an event back, which may be reached or not. */
  public synchronized void release(long event) {
    if (closed) {
      return;
    }
    if (freeCount == free.length) {
      free = Arrays.copyOf(free, 2 * freeCount);
    }
    free[freeCount++] = event;
  }

  /** Returns the number of events that are acquired. */
  public synchronized int inUse() {
    return madeCount - freeCount;
  }

  /** Destroys all events, those that somebody gave up without a word too; nothing uses them. */
  public synchronized void close() {
    closed = true;
    freeCount = 0;
    while (madeCount > 0) {
      calls.destroy(made[--madeCount]);
    }
  }
}
