package dev.tutti.cuda.driver;

import java.util.Arrays;

/**
 * A pool of events for reuse, because creating one costs more than recording it. All methods may be
 * called from any thread, with the device's context current.
 */
public final class EventPool {
  private final EventCalls calls;
  private long[] free = new long[16];
  private long[] made = new long[16];
  private int freeCount;
  private int madeCount;
  private boolean closed;

  /**
   * Creates an empty pool.
   *
   * @param calls creates the events
   */
  public EventPool(EventCalls calls) {
    this.calls = calls;
  }

  /** Returns an event for exclusive use. */
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

  /** Takes back an event, reached or not. */
  public synchronized void release(long event) {
    if (closed) {
      return;
    }
    if (freeCount == free.length) {
      free = Arrays.copyOf(free, 2 * freeCount);
    }
    free[freeCount++] = event;
  }

  /** Returns the number of events in use. */
  public synchronized int inUse() {
    return madeCount - freeCount;
  }

  /** Destroys all events, including those that were never released; none may be in use. */
  public synchronized void close() {
    closed = true;
    freeCount = 0;
    while (madeCount > 0) {
      calls.destroy(made[--madeCount]);
    }
  }
}
