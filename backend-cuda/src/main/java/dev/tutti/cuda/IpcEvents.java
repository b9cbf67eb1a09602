package dev.tutti.cuda;

import dev.tutti.cuda.driver.EventCalls;
import java.util.ArrayDeque;
import java.util.HashMap;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/** Keeps the events that other processes can open; the driver has some 20 000 for all. */
final class IpcEvents {
  /** The number of events that a process makes (c10d: {@code CUDA_IPC_MAXIMUM_EVENTS_TO_USE}). */
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

  /** Returns an event that nobody else has, or null if there are too many; in the context. */
  synchronized @Nullable Event take(CudaDevice device) {
    Event known = free.computeIfAbsent(device, _ -> new ArrayDeque<>()).poll();
    if (known != null || made == LIMIT) {
      return known;
    }
    long number = calls.create(EventCalls.Kind.INTERPROCESS);
    try {
      Event event = new Event(device, number, calls.exportHandle(number));
      made++;
      return event;
    } catch (RuntimeException e) {
      calls.destroy(number);
      throw e;
    }
  }

  /** Takes an event back that no other process has open. */
  synchronized void giveBack(Event event) {
    if (closed) {
      destroy(event);
    } else {
      free.computeIfAbsent(event.device, _ -> new ArrayDeque<>()).push(event);
    }
  }

  /** Returns the number of events that are with somebody. */
  synchronized int inUse() {
    return made - free.values().stream().mapToInt(ArrayDeque::size).sum();
  }

  private void destroy(Event event) {
    event.device.context().enter();
    made--;
    calls.destroy(event.number);
  }

  /** Destroys the events, those in use when they come back. */
  synchronized void close() {
    closed = true;
    free.values().forEach(events -> events.forEach(this::destroy));
    free.clear();
  }
}
