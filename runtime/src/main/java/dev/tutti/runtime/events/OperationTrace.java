package dev.tutti.runtime.events;

import dev.tutti.WorkState;
import dev.tutti.spi.Call;
import org.jspecify.annotations.Nullable;

/** A reusable trace of one operation at a time, from its beginning to its end, on any thread. */
public interface OperationTrace {
  /** Begins the event now. */
  void start();

  /**
   * Ends the event now, and writes it if a recording includes it.
   *
   * @param group the name of the group
   * @param rank this process's rank in the group
   * @param call the call, with its tensors not yet forgotten
   * @param sequence the number of the operation
   * @param backend the name of the backend
   * @param path the path that the operation took, or null if it is not known
   * @param state how the operation ended
   * @param queuedNanos how long the operation waited for its turn
   */
  void end(
      String group,
      int rank,
      Call call,
      long sequence,
      String backend,
      @Nullable String path,
      WorkState state,
      long queuedNanos);
}
