package dev.tutti;

/** Says how far an operation is; the last four are final. */
public enum WorkState {
  /** Waits for its turn in the group. */
  QUEUED,
  /** Runs. */
  RUNNING,
  /** Completed: its results may be read. */
  COMPLETED,
  /** Failed, by itself or because a peer did. */
  FAILED,
  /** Did not end before its deadline. */
  TIMED_OUT,
  /** Was ended by abort or close. */
  ABORTED;

  /** Tells whether no further change comes. */
  public boolean isFinal() {
    return compareTo(COMPLETED) >= 0;
  }
}
