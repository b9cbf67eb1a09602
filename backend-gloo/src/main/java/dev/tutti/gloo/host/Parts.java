package dev.tutti.gloo.host;

/** Divides bytes among ranks. */
final class Parts {
  /** Of how many bytes all parts but the last ones are multiples. */
  static final long LINE = 64;

  private Parts() {}

  /**
   * Returns the bytes of each rank's part, whole cache lines; the last parts may be short or empty.
   */
  static long bytes(long total, int ranks) {
    return Math.ceilDiv(Math.ceilDiv(total, ranks), LINE) * LINE;
  }

  /** Returns how many bytes of a stage each rank gets, whole cache lines. */
  static long piece(long stageBytes, int ranks) {
    return stageBytes / ranks / LINE * LINE;
  }
}
