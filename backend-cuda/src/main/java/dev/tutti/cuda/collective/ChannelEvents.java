package dev.tutti.cuda.collective;

import dev.tutti.cuda.CudaDevice;
import dev.tutti.cuda.access.Parts;
import dev.tutti.spi.Operation;
import java.util.ArrayDeque;

/** A pool of the events of a channel's operations. Thread-safe. */
public final class ChannelEvents {
  private final CudaDevice device;
  private final ChannelEvent.EndCheck outcome;
  private final OpenEvents open = new OpenEvents();
  private final ArrayDeque<ChannelEvent> free = new ArrayDeque<>();

  /**
   * Creates an empty pool.
   *
   * @param device the device of the channel
   * @param outcome determines how an operation of the channel ended
   */
  public ChannelEvents(CudaDevice device, ChannelEvent.EndCheck outcome) {
    this.device = device;
    this.outcome = outcome;
  }

  /** Returns an event for an operation; the caller must record it. */
  public synchronized ChannelEvent take(Operation op) {
    ChannelEvent event = free.pollLast();
    if (event == null) {
      event =
          new ChannelEvent(
              Parts.of(device).owner().event(), outcome, op, ChannelEvent.NO_SOURCE, this);
    } else {
      event.follow(op);
    }
    open.add(event.event());
    return event;
  }

  synchronized void give(ChannelEvent event) {
    free.addLast(event);
  }

  /**
   * Releases the events that failed operations left behind; the device must have reached all of
   * them.
   */
  public synchronized void close() {
    open.close();
  }
}
