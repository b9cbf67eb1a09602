package dev.tutti.cuda.collective;

import static dev.tutti.cuda.access.CudaAccess.access;

import dev.tutti.cuda.CudaDevice;
import dev.tutti.spi.Operation;
import java.util.Arrays;

/** Keeps the events of a channel's operations for use again. Any thread. */
final class ChannelEvents {
  private final CudaDevice device;
  private final ControlWords control;
  private final int rank;
  private final int[] ranks;
  private final OpenEvents open = new OpenEvents();
  private ChannelEvent[] free = new ChannelEvent[16];
  private int count;

  /**
   * Creates a pool that has none yet.
   *
   * @param device of the channel
   * @param control of the channel
   * @param rank this rank in the group
   * @param ranks of the channel, as ranks of the group
   */
  ChannelEvents(CudaDevice device, ControlWords control, int rank, int[] ranks) {
    this.device = device;
    this.control = control;
    this.rank = rank;
    this.ranks = ranks;
  }

  /** Returns an event for an operation; the caller records it. */
  synchronized ChannelEvent take(Operation op) {
    ChannelEvent event;
    if (count == 0) {
      event = new ChannelEvent(access().event(device), control, op, rank, ranks, -1, this);
    } else {
      event = free[--count];
      event.follow(op);
    }
    open.add(event.event());
    return event;
  }

  synchronized void give(ChannelEvent event) {
    if (count == free.length) {
      free = Arrays.copyOf(free, 2 * count);
    }
    free[count++] = event;
  }

  /** Gives back what operations that failed have left; the device has reached all. */
  synchronized void close() {
    open.close();
  }
}
