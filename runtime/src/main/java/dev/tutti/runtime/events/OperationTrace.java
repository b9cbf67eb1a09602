package dev.tutti.runtime.events;

import dev.tutti.WorkState;
import dev.tutti.spi.Call;
import org.jspecify.annotations.Nullable;

/** The record of one operation at a time, from its begin to its end, on whichever thread. */
public interface OperationTrace {
  /** Begins now. */
  void start();

  /**
   * Ends now, and is written if somebody records.
   *
   * @param group its name
   * @param rank of this process in it
   * @param call what was asked for; its tensors are not forgotten yet
   * @param sequence its number
   * @param backend name of the backend
   * @param path that it took, null if that is not known
   * @param state how it ended
   * @param queuedNanos how long it waited for its turn
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
