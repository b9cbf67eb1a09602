package dev.tutti.runtime.events;

import dev.tutti.OpType;
import org.jspecify.annotations.Nullable;

/**
 * Writes events to the JDK's Flight Recorder; does nothing in a runtime image without the module
 * {@code jdk.jfr}. Any thread may call its methods.
 */
public class Events {
  /*
   * Only JfrEvents and the classes behind it refer to jdk.jfr, and JfrEvents is loaded only if that
   * module is present; this class itself records nothing. The instance is a constant to the
   * compiler; that nothing is recorded is a field that it reads.
   */
  private static final Events INSTANCE = find();

  Events() {}

  /** Returns the one instance. */
  public static Events get() {
    return INSTANCE;
  }

  private static Events find() {
    try {
      boolean isThere =
          ModuleLayer.boot()
              .findModule("jdk.jfr")
              .filter(Events.class.getModule()::canRead)
              .isPresent();
      return isThere ? new JfrEvents() : new Events();
    } catch (LinkageError e) {
      return new Events();
    }
  }

  /** Returns whether collectives are being recorded. */
  public boolean areCollectivesRecorded() {
    return false;
  }

  /** Creates a trace for collectives that run one after another; null if that is not possible. */
  public @Nullable OperationTrace reusable() {
    return null;
  }

  /** Begins to record an operation; null if its type is not being recorded. */
  public @Nullable OperationTrace begin(OpType type) {
    return null;
  }

  /**
   * Records a change in the life of a group.
   *
   * @param state made, failed or closed
   * @param why the reason for the failure, or empty
   */
  public void group(String group, int rank, int size, String backends, String state, String why) {}

  /**
   * Records a failure as the ranks agreed on it.
   *
   * @param failedRank the rank to blame, or -1
   * @param sequence the number of the operation that failed, or 0
   */
  public void failure(
      String group,
      int rank,
      String kind,
      int failedRank,
      String operation,
      long sequence,
      String text) {}

  /** Adds flight records that are written whenever a recording ends a chunk. */
  public void add(RecordSource records) {}

  /** Stops writing these flight records. */
  public void remove(RecordSource records) {}

  /**
   * Returns the start of a store call, for {@link #endStoreCall}; null if store calls are not being
   * recorded.
   */
  public @Nullable Object beginStoreCall() {
    return null;
  }

  /** Records a store call if it took long. */
  public void endStoreCall(Object begun, String call, String key) {}
}
