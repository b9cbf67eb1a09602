package dev.tutti.cuda.memory;

import dev.tutti.cuda.driver.DeviceContext;
import dev.tutti.cuda.driver.EventPool;

/**
 * A stream whose work uses blocks of memory.
 *
 * @param context the context of the stream's device
 * @param events the event pool of the stream's device
 * @param handle the driver's handle; 0 is the default stream
 * @param isForeign whether another library created the stream and may destroy it as soon as no
 *     block uses it
 */
public record BlockStream(DeviceContext context, EventPool events, long handle, boolean isForeign) {

  /**
   * Marks the current end of the stream's work with an event.
   *
   * @return the event, or 0 if it cannot be recorded now: a stream that is being captured would
   *     take the event into the graph, where it cannot be queried
   */
  long tryMark() {
    long event = 0;
    boolean good = false;
    try {
      event = events.acquire();
      good = mark(event);
    } catch (RuntimeException e) {
      // The caller tries again, and keeps the block until then.
    } finally {
      if (!good && event != 0) {
        events.release(event);
      }
    }
    return good ? event : 0;
  }

  /**
   * Copies between two addresses on the device, whose context must be current on the calling
   * thread.
   */
  public void copy(long to, long from, long bytes) {
    context.driver().streams().copy(to, from, bytes, handle);
  }

  private boolean mark(long event) {
    return context.callRelaxed(
        () -> {
          if (isCapturing()) {
            return false;
          }
          context.driver().events().record(event, handle);
          // A capture that began just then contains the event.
          return !isCapturing();
        });
  }

  private boolean isCapturing() {
    return context.driver().streams().isCapturing(handle);
  }

  /** Returns, without blocking, whether an event from {@link #tryMark} was reached. */
  boolean isReached(long event) {
    return context.isReached(event);
  }
}
