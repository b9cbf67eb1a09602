package dev.tutti.cuda.collective;

import dev.tutti.cuda.CudaEvent;
import dev.tutti.cuda.access.Parts;
import java.util.ArrayList;
import java.util.List;

/**
 * The events that may still hold a driver event. Not thread-safe; an event may be in only one such
 * collection.
 */
public final class OpenEvents {
  private static final int FIRST_LIMIT = 64;

  private final List<CudaEvent> open = new ArrayList<>();
  private int limit = FIRST_LIMIT;

  /** Adds an event, and from time to time drops those already seen to be reached. */
  public void add(CudaEvent event) {
    if (Parts.of(event).isListed()) {
      return;
    }
    if (open.size() >= limit) {
      open.removeIf(OpenEvents::forget);
      limit = Math.max(FIRST_LIMIT, 2 * open.size());
    }
    Parts.of(event).setListed(true);
    open.add(event);
  }

  private static boolean forget(CudaEvent event) {
    boolean reached = Parts.of(event).isKnownReached();
    if (reached) {
      Parts.of(event).setListed(false);
    }
    return reached;
  }

  /** Returns the number of events in this collection. */
  int size() {
    return open.size();
  }

  /** Releases all events; the device must have reached them. */
  public void close() {
    open.forEach(event -> Parts.of(event).takeForReached());
    open.clear();
  }
}
