package dev.tutti.cuda.ipc;

import dev.tutti.cuda.CudaDevice;
import dev.tutti.cuda.access.Parts;
import dev.tutti.cuda.driver.EventCalls;
import java.util.ArrayDeque;
import java.util.HashMap;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * A pool of the events that other processes can open; the driver has only about 20,000 of them for
 * all processes.
 */
final class IpcEvents {
  /**
   * The maximum number of events that a process makes (c10d: {@code
   * CUDA_IPC_MAXIMUM_EVENTS_TO_USE}).
   */
  static final int LIMIT = 1000;

  private final EventCalls calls;
  private final Map<CudaDevice, ArrayDeque<Event>> free = new HashMap<>();
  private int made;
  private boolean closed;

  @SuppressWarnings("ArrayRecordComponent") // never compared
  record Event(CudaDevice device, long number, byte[] handle) {}

  IpcEvents(EventCalls calls) {
    this.calls = calls;
  }

  /**
   * Returns an event for exclusive use, or null if too many are in use; must be called in the
   * device's context.
   */
  synchronized @Nullable Event take(CudaDevice device) {
    Event known = free.computeIfAbsent(device, _ -> new ArrayDeque<>()).poll();
    if (known != null || made == LIMIT) {
      return known;
    }
    long number = calls.create(EventCalls.Purpose.INTERPROCESS);
    try {
      Event event = new Event(device, number, calls.exportHandle(number));
      made++;
      return event;
    } catch (RuntimeException e) {
      calls.destroy(number);
      throw e;
    }
  }

  /** Takes back an event that no other process has open. */
  synchronized void giveBack(Event event) {
    if (closed) {
      destroy(event);
    } else {
      free.computeIfAbsent(event.device, _ -> new ArrayDeque<>()).push(event);
    }
  }

  /** Returns the number of events in use. */
  synchronized int inUse() {
    return made - free.values().stream().mapToInt(ArrayDeque::size).sum();
  }

  private void destroy(Event event) {
    Parts.of(event.device).context().enter();
    made--;
    calls.destroy(event.number);
  }

  /** Destroys the events; those still in use are destroyed when they are given back. */
  synchronized void close() {
    closed = true;
    free.values().forEach(events -> events.forEach(this::destroy));
    free.clear();
  }
}
