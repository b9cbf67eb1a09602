package dev.tutti.runtime.events;

import dev.tutti.OpType;
import org.jspecify.annotations.Nullable;

/**
 * Writes events of the JDK's Flight Recorder; does nothing in a runtime image without the module
 * {@code jdk.jfr}. Any thread may call it.
 */
public abstract class Events {
  /*
   * No class but those behind JfrEvents names one of jdk.jfr, and that one is loaded only if the
   * module is there. The instance is a constant to the compiler, and so, until somebody records, is
   * that nobody does.
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

  /** Tells whether somebody records collectives. */
  public abstract boolean areCollectivesRecorded();

  /** Creates what records collectives that run one after another; null if that is not possible. */
  public abstract @Nullable OperationTrace reusable();

  /** Begins to record an operation; null if nobody records that type. */
  public abstract @Nullable OperationTrace begin(OpType type);

  /**
   * Records what became of a group.
   *
   * @param state made, failed or closed
   * @param why it failed, or empty
   */
  public abstract void group(
      String group, int rank, int size, String backends, String state, String why);

  /**
   * Records a failure as the ranks agreed on it.
   *
   * @param failedRank the rank to blame, or -1
   * @param sequence number of the operation that failed, or 0
   */
  public abstract void failure(
      String group,
      int rank,
      String kind,
      int failedRank,
      String operation,
      long sequence,
      String text);

  /** Has flight records written whenever a recording ends a chunk. */
  public abstract void add(RecordSource records);

  /** Has them written no more. */
  public abstract void remove(RecordSource records);

  /**
   * Returns where a call of the store begins, for {@link #endStoreCall}; null if nobody records.
   */
  public abstract @Nullable Object beginStoreCall();

  /** Records a call of the store, if it took long. */
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
