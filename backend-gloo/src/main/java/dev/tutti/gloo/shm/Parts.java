package dev.tutti.gloo.shm;

/** Divides bytes among ranks. */
public final class Parts {
  /** The alignment in bytes of every part but the last ones. */
  static final long LINE = 64;

  private Parts() {}

  /**
   * Returns the number of bytes of each rank's part, in whole cache lines; the last parts may be
   * short or empty.
   */
  public static long bytes(long total, int ranks) {
    return Math.ceilDiv(Math.ceilDiv(total, ranks), LINE) * LINE;
  }

  /** Returns how many bytes of a stage each rank gets, in whole cache lines. */
  public static long piece(long stageBytes, int ranks) {
    return stageBytes / ranks / LINE * LINE;
  }
}
