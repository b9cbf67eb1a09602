package dev.tutti;

/** Says what a stream block's kernel last reported, with c10d's numbers. */
public enum StreamBlockStatus {
  /** Has not started. */
  UNKNOWN(0),
  /** Blocks its stream. */
  RUNNING(1),
  /** Released its stream because its time was over. */
  TIMED_OUT(2),
  /** Released its stream because it was told to. */
  ABORTED(3);

  private final int code;

  StreamBlockStatus(int code) {
    this.code = code;
  }

  /** Returns the number that the device writes. */
  public int code() {
    return code;
  }

  /**
   * Finds a status by its number.
   *
   * @param code 0 to 3
   * @throws IllegalArgumentException if there is none such
   */
  public static StreamBlockStatus ofCode(int code) {
    if (code < 0 || code >= values().length) {
      throw new IllegalArgumentException("no such stream block status: " + code);
    }
    return values()[code];
  }
}
