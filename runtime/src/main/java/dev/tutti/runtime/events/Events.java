package dev.tutti.runtime.events;

import dev.tutti.OpType;
import org.jspecify.annotations.Nullable;

/**
 * Writes events to the JDK's Flight Recorder; does nothing in a runtime image without the module
 * {@code jdk.jfr}. Any thread may call its methods.
 */
public abstract class Events {
  /*
   * Only JfrEvents and the classes behind it refer to jdk.jfr, and JfrEvents is loaded only if that
   * module is present. The instance is a constant to the compiler; that nothing is recorded is a
   * field that it reads.
   */
  private static final Events INSTANCE = find();

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
      return isThere ? new JfrEvents() : new NoEvents();
    } catch (LinkageError e) {
      return new NoEvents();
    }
  }

  /** Tells whether collectives are being recorded. */
  public abstract boolean areCollectivesRecorded();

  /** Creates a trace for collectives that run one after another; null if that is not possible. */
  public abstract @Nullable OperationTrace reusable();

  /** Begins to record an operation; null if its type is not being recorded. */
  public abstract @Nullable OperationTrace begin(OpType type);

  /**
   * Records a change in the life of a group.
   *
   * @param state made, failed or closed
   * @param why the reason for the failure, or empty
   */
  public abstract void group(
      String group, int rank, int size, String backends, String state, String why);

  /**
   * Records a failure as the ranks agreed on it.
   *
   * @param failedRank the rank to blame, or -1
   * @param sequence the number of the operation that failed, or 0
   */
  public abstract void failure(
      String group,
      int rank,
      String kind,
      int failedRank,
      String operation,
      long sequence,
      String text);

  /** Adds flight records that are written whenever a recording ends a chunk. */
  public abstract void add(RecordSource records);

  /** Stops writing these flight records. */
  public abstract void remove(RecordSource records);

  /**
   * Returns the start of a store call, for {@link #endStoreCall}; null if store calls are not being
   * recorded.
   */
  public abstract @Nullable Object beginStoreCall();

  /** Records a store call if it took long. */
  public abstract void endStoreCall(Object begun, String call, String key);

  private static final class NoEvents extends Events {
    @Override
    public boolean areCollectivesRecorded() {
      return false;
    }

    @Override
    public @Nullable OperationTrace reusable() {
      return null;
    }

    @Override
    public @Nullable OperationTrace begin(OpType type) {
      return null;
    }

    @Override
    public void group(
        String group, int rank, int size, String backends, String state, String why) {}

    @Override
    public void failure(
        String group,
        int rank,
        String kind,
        int failedRank,
        String operation,
        long sequence,
        String text) {}

    @Override
    public void add(RecordSource records) {}

    @Override
    public void remove(RecordSource records) {}

    @Override
    public @Nullable Object beginStoreCall() {
      return null;
    }

    @Override
    public void endStoreCall(Object begun, String call, String key) {}
  }
}
