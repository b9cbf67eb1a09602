package dev.tutti.gloo.transport;

/**
 * The bytes of one pair, as a thread that drives sees them. All methods require the transport's
 * lock.
 */
abstract class PairTraffic {
  /** The position among the active pairs, or -1. */
  int activeIndex = -1;

  /** Whether the pair is among those to be flushed. */
  boolean dirty;

  /** Whether the pair is among those with buffered bytes. */
  boolean buffered;

  /**
   * Writes as many bytes as there is space for.
   *
   * @return whether anything was written
   */
  abstract boolean flush();

  /** Returns whether bytes wait to be written. */
  abstract boolean hasUnsent();

  /** Sets whether this rank is to be woken when there is space for bytes again. */
  abstract void wantWrites(boolean wanted);

  /**
   * Reads available bytes, up to a limit.
   *
   * @return whether anything was read or the connection ended
   */
  abstract boolean readable();

  /** Returns whether there are bytes to read that a selector does not report. */
  abstract boolean hasBuffered();

  /** Reads from the ring, if there is one; returns whether there was anything to read. */
  abstract boolean pollRing();

  /** Returns whether a ring can be read, or has space for bytes that wait to be written. */
  abstract boolean hasRingWork();
}
