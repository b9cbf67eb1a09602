package dev.tutti.cuda.driver;

import java.util.Arrays;

/**
 * A pool of a device's events for reuse, because creating one costs more than recording it. All
 * methods may be called from any thread.
 */
public final class EventPool {
  /*
   * A virtual thread that has to wait for a lock may go on with another carrier, whose current
   * context may be another device's. So a context is entered after the last lock, and just before
   * the call that needs it.
   */
  private final DeviceContext context;
  private final EventCalls calls;
  private long[] free = new long[16];
  private long[] made = new long[16];
  private int freeCount;
  private int madeCount;
  private boolean closed;

  /**
   * Creates an empty pool.
   *
   * @param context the context of the events
   */
  public EventPool(DeviceContext context) {
    this.context = context;
    this.calls = context.driver().events();
  }

  /** Returns an event for exclusive use. May leave any context current on a virtual thread. */
  public synchronized long acquire() {
    if (closed) {
      throw new IllegalStateException("the device was closed");
    }
    if (freeCount > 0) {
      return free[--freeCount];
    }
    context.enter();
    long event = calls.create(EventCalls.Purpose.ORDER);
    if (madeCount == made.length) {
      made = Arrays.copyOf(made, 2 * madeCount);
    }
    made[madeCount++] = event;
    return event;
  }

  /**
   * Returns an event, for exclusive use, at the current end of a stream's work. Enters the context.
   */
  public long record(long stream) {
    long event = acquire();
    try {
      context.enter();
      calls.record(event, stream);
      return event;
    } catch (RuntimeException e) {
      release(event);
      throw e;
    }
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
