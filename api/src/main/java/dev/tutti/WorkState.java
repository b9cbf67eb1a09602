package dev.tutti;

/** The state of an operation; the last four are final. */
public enum WorkState {
  /** The operation waits for its turn in the group. */
  QUEUED,
  /** The operation is running. */
  RUNNING,
  /** The operation completed, and its results may be read. */
  COMPLETED,
  /** The operation failed, by itself or because a peer did. */
  FAILED,
  /** The operation did not end before its deadline. */
  TIMED_OUT,
  /** The operation was ended by an abort or a close. */
  ABORTED;

  /** Returns whether the state can no longer change. */
  public boolean isFinal() {
    return compareTo(COMPLETED) >= 0;
  }
}
