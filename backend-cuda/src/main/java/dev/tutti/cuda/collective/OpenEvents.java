package dev.tutti.cuda.collective;

import static dev.tutti.cuda.access.CudaAccess.access;

import dev.tutti.cuda.CudaEvent;
import java.util.ArrayList;
import java.util.List;

/**
 * Knows the events that may still have something of the driver's. One thread at a time; an event is
 * known to one of these only.
 */
public final class OpenEvents {
  private static final int FIRST_LIMIT = 64;

  private final List<CudaEvent> open = new ArrayList<>();
  private int limit = FIRST_LIMIT;

  /** Adds an event that is to be recorded, and forgets such as somebody saw reached. */
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

  /** Returns the number of events that it knows. */
  int size() {
    return open.size();
  }

  /** Gives back what all have; the device has reached them. */
  public void close() {
    open.forEach(access()::takeForReached);
    open.clear();
  }
}
