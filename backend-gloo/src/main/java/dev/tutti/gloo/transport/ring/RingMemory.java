package dev.tutti.gloo.transport.ring;

import java.lang.foreign.MemorySegment;

/**
 * Finds the memory through which the ranks of a host exchange messages; zeros before its use. Ranks
 * are numbered within the host.
 */
public interface RingMemory {
  /** Bytes of a line that one rank writes. */
  int LINE = 128;

  /** Bytes in front of those that a ring holds: a line of its writer and one of its reader. */
  int HEADER = 2 * LINE;

  /**
   * Returns the line in which a rank says that it sleeps.
   *
   * @param rank whose
   */
  MemorySegment sleep(int rank);

  /**
   * Returns a ring, {@link #HEADER} and then a power of two of bytes.
   *
   * @param from the rank that writes
   * @param to the rank that reads
   */
  MemorySegment ring(int from, int to);
}
