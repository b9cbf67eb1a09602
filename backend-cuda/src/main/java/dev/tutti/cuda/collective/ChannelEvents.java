package dev.tutti.cuda.collective;

import static dev.tutti.cuda.access.CudaAccess.access;

import dev.tutti.cuda.CudaDevice;
import dev.tutti.spi.Operation;
import java.util.ArrayDeque;

/** Keeps the events of a channel's operations for use again. Any thread. */
public final class ChannelEvents {
  private final CudaDevice device;
  private final ChannelEvent.Outcome outcome;
  private final OpenEvents open = new OpenEvents();
  private final ArrayDeque<ChannelEvent> free = new ArrayDeque<>();

  /**
   * Creates a pool that has none yet.
   *
   * @param device of the channel
   * @param outcome how an operation of the channel ended
   */
  public ChannelEvents(CudaDevice device, ChannelEvent.Outcome outcome) {
    this.device = device;
    this.outcome = outcome;
  }

  /** Returns an event for an operation; the caller records it. */
  public synchronized ChannelEvent take(Operation op) {
    ChannelEvent event = free.pollLast();
    if (event == null) {
      event = new ChannelEvent(access().event(device), outcome, op, MessageMatcher.ANY, this);
    } else {
      event.follow(op);
    }
    open.add(event.event());
    return event;
  }

  synchronized void give(ChannelEvent event) {
    free.addLast(event);
  }

  /** Gives back what operations that failed have left; the device has reached all. */
  public synchronized void close() {
    open.close();
  }
}
