package dev.tutti;

/** The status that a stream block's kernel last reported, with c10d's numbers. */
public enum StreamBlockStatus {
  /** The kernel has not started. */
  UNKNOWN(0),
  /** The kernel blocks its stream. */
  RUNNING(1),
  /** The kernel released its stream because its time ran out. */
  TIMED_OUT(2),
  /** The kernel released its stream as it was asked to. */
  ABORTED(3);

  private final int code;

  StreamBlockStatus(int code) {
    this.code = code;
  }

  /** Returns the number that the device writes for this status. */
  public int code() {
    return code;
  }

  /**
   * Finds a status by its number.
   *
   * @param code the number, from 0 to 3
   * @throws IllegalArgumentException if there is no such status
   */
  public static StreamBlockStatus ofCode(int code) {
    if (code < 0 || code >= values().length) {
      throw new IllegalArgumentException("no such stream block status: " + code);
    }
    return values()[code];
  }
}
