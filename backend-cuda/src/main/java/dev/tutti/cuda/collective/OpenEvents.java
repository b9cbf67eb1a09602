package dev.tutti.cuda.collective;

import static dev.tutti.cuda.access.CudaAccess.access;

import dev.tutti.cuda.CudaEvent;
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
    if (access().isListed(event)) {
      return;
    }
    if (open.size() >= limit) {
      open.removeIf(OpenEvents::forget);
      limit = Math.max(FIRST_LIMIT, 2 * open.size());
    }
    access().setListed(event, true);
    open.add(event);
  }

  private static boolean forget(CudaEvent event) {
    boolean reached = access().isKnownReached(event);
    if (reached) {
      access().setListed(event, false);
    }
    return reached;
  }

  /** Returns the number of events in this collection. */
  int size() {
    return open.size();
  }

  /** Releases all events; the device must have reached them. */
  public void close() {
    open.forEach(access()::takeForReached);
    open.clear();
  }
}
