package dev.tutti.cuda.memory;

import dev.tutti.cuda.driver.DeviceContext;
import dev.tutti.cuda.driver.EventPool;

/**
 * A stream whose work uses blocks.
 *
 * @param context its device
 * @param events events of its device
 * @param handle the driver's; 0 is the default stream
 * @param isForeign whether another library made it, and may destroy it as soon as no block uses it
 */
public record BlockStream(DeviceContext context, EventPool events, long handle, boolean isForeign) {

  /**
   * Marks where the stream is by an event of its device.
   *
   * @return the event, or 0 if there is none now: a stream that is being recorded into a graph
   *     would take the event into the graph, where nobody may ask for it
   */
  long tryMark() {
    try {
      return context.callRelaxed(this::mark);
    } catch (RuntimeException e) {
      // Whoever asks tries again, and keeps the block until then.
      return 0;
    }
  }

  private long mark() {
    long event = events.acquire();
    boolean good = false;
    try {
      if (!isCapturing()) {
        context.driver().events().record(event, handle);
        // A recording that began just then has the event in it.
        good = !isCapturing();
      }
      return good ? event : 0;
    } finally {
      if (!good) {
        events.release(event);
      }
    }
  }

  private boolean isCapturing() {
    return context.driver().streams().isCapturing(handle);
  }

  /** Tells, without blocking, whether an event of {@link #tryMark} was reached. */
  boolean isReached(long event) {
    return context.isReached(event);
  }
}
