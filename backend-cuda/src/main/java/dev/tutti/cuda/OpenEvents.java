package dev.tutti.cuda;

import java.util.Collections;
import java.util.IdentityHashMap;
import java.util.Set;

/** Knows the events that may still have something of the driver's. One thread at a time. */
final class OpenEvents {
  private static final int FIRST_LIMIT = 64;

  private final Set<CudaEvent> open = Collections.newSetFromMap(new IdentityHashMap<>());
  private int limit = FIRST_LIMIT;

  /** Adds an event that is to be recorded, and forgets such as somebody saw reached. */
  void add(CudaEvent event) {
    if (open.size() >= limit) {
      open.removeIf(CudaEvent::isKnownReached);
      limit = Math.max(FIRST_LIMIT, 2 * open.size());
    }
    open.add(event);
  }

  /** Returns the number of events that it knows. */
  int size() {
    return open.size();
  }

  /** Gives back what all have; the device has reached them. */
  void close() {
    open.forEach(CudaEvent::takeForReached);
    open.clear();
  }
}
