package dev.tutti.cuda.access;

import dev.tutti.cuda.CudaException;
import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;

/**
 * The graphs on a device that contain collectives of groups that are closed. The driver does not
 * say whether they still exist, so the addresses in them are never used for anything else: a replay
 * then ends as an illegal access, and changes nothing of another group. Thread-safe.
 */
public final class StaleGraphs implements AutoCloseable {
  private final Set<String> groups = new LinkedHashSet<>();
  private final List<Runnable> kept = new ArrayList<>();

  StaleGraphs() {}

  /**
   * Keeps what graphs refer to until the device is closed.
   *
   * @param group the group whose collectives are in graphs
   * @param free frees what is kept
   */
  public synchronized void keep(String group, Runnable free) {
    groups.add(group);
    kept.add(free);
  }

  /**
   * Returns a failure of the device, with a hint if the replay of such a graph may have caused it.
   */
  public synchronized CudaException explain(CudaException e) {
    if (groups.isEmpty() || e.isOutOfMemory()) {
      return e;
    }
    CudaException explained =
        new CudaException(
            e.call(),
            e.code(),
            e.errorName(),
            "was a graph replayed that was captured in group "
                + String.join(" or ", groups)
                + "? That group is closed: capture graphs anew in the group that follows");
    explained.initCause(e);
    return explained;
  }

  /** Frees what was kept. */
  @Override
  public synchronized void close() {
    kept.forEach(Runnable::run);
    kept.clear();
  }
}
