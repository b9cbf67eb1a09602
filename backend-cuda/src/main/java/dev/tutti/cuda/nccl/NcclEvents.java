package dev.tutti.cuda.nccl;

import static dev.tutti.cuda.access.CudaAccess.access;

import dev.tutti.cuda.CudaDevice;
import dev.tutti.cuda.collective.OpenEvents;
import dev.tutti.spi.Operation;
import java.util.ArrayDeque;

/** Keeps the events of a communicator's operations for use again. Any thread. */
final class NcclEvents {
  private final CudaDevice device;
  private final LazyCommunicator communicator;
  private final OpenEvents open = new OpenEvents();
  private final ArrayDeque<NcclEvent> free = new ArrayDeque<>();

  NcclEvents(CudaDevice device, LazyCommunicator communicator) {
    this.device = device;
    this.communicator = communicator;
  }

  /** Returns an event for an operation; the caller records it. */
  synchronized NcclEvent take(Operation op) {
    NcclEvent event = free.pollLast();
    if (event == null) {
      Communicator made = communicator.made();
      if (made == null) {
        throw new AssertionError("an operation without a communicator");
      }
      event = new NcclEvent(access().event(device), made, this, op);
    } else {
      event.follow(op);
    }
    open.add(event.event());
    return event;
  }

  synchronized void give(NcclEvent event) {
    free.addLast(event);
  }

  /** Gives back what operations that failed have left; the device has reached all. */
  synchronized void close() {
    open.close();
  }
}
