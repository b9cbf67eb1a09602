package dev.tutti.cuda.access;

import dev.tutti.cuda.driver.DeviceContext;
import dev.tutti.cuda.driver.EventPool;
import dev.tutti.cuda.memory.BlockStream;
import org.jspecify.annotations.Nullable;

/**
 * The driver's event behind a point in a stream, reused for another point once this point was seen
 * to be reached, or is closed. Any thread may call any method.
 */
public final class EventMark {
  private final DeviceContext context;
  private final EventPool pool;
  private final @Nullable BlockStream stream;
  private long handle;
  private boolean reached;
  private boolean listed;

  /**
   * Creates an event.
   *
   * @param context the context of the event's device
   * @param pool the pool of that device's events
   * @param stream the stream that the event marks permanently, or null
   * @param handle the driver's event, or 0 if there is none before {@link #recordIn}
   */
  public EventMark(
      DeviceContext context, EventPool pool, @Nullable BlockStream stream, long handle) {
    this.context = context;
    this.pool = pool;
    this.stream = stream;
    this.handle = handle;
  }

  /** Returns the stream that the event marks permanently, or null. */
  public @Nullable BlockStream stream() {
    return stream;
  }

  /**
   * Marks the current end of a stream's work, replacing any point marked before. Enters the
   * device's context. Allocates nothing in the steady state.
   *
   * @param of the handle of a stream of the event's device
   */
  public synchronized void recordIn(long of) {
    if (handle == 0) {
      handle = pool.acquire();
    }
    reached = false;
    context.enter();
    context.driver().events().record(handle, of);
  }

  /**
   * Returns whether the point was reached.
   *
   * @throws dev.tutti.cuda.CudaException if the device failed
   * @throws IllegalStateException if the event was closed before it was seen to be reached
   */
  public synchronized boolean isReached() {
    if (reached) {
      return true;
    }
    requireOpen();
    if (context.isReached(handle)) {
      reached = true;
      giveBack();
    }
    return reached;
  }

  /** Returns whether a collection of open events holds this one; only that collection calls. */
  public boolean isListed() {
    return listed;
  }

  /** Records whether a collection of open events holds this one; only that collection calls. */
  public void setListed(boolean newListed) {
    listed = newListed;
  }

  /** Orders later work in a stream, of any device, after this point. */
  public synchronized void order(BlockStream later) {
    if (reached) {
      return;
    }
    requireOpen();
    later.context().enter();
    context.driver().streams().waitFor(later.handle(), handle);
  }

  /** Returns whether the point was already seen to be reached, without querying the device. */
  public synchronized boolean isKnownReached() {
    return reached;
  }

  /**
   * Treats the point as reached without querying it, because a later point on the device has been
   * reached.
   */
  public synchronized void takeForReached() {
    reached = true;
    giveBack();
  }

  /** Gives up the event, whether or not its point was reached. */
  public synchronized void close() {
    giveBack();
  }

  private void giveBack() {
    if (handle != 0) {
      pool.release(handle);
      handle = 0;
    }
  }

  private void requireOpen() {
    if (handle == 0) {
      throw new IllegalStateException("the event was closed");
    }
  }
}
