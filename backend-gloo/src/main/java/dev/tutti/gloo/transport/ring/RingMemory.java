package dev.tutti.gloo.transport.ring;

import java.lang.foreign.MemorySegment;

/**
 * Locates the memory through which the ranks of a host exchange messages; the memory is zeroed
 * before it is used. Ranks are numbered within the host.
 */
public interface RingMemory {
  /** The size in bytes of a line that one rank writes. */
  int LINE = 128;

  /**
   * The size in bytes of a ring's header, which precedes its data: one line for its writer and one
   * for its reader.
   */
  int HEADER = 2 * LINE;

  /**
   * Returns the line in which a rank says that it is asleep.
   *
   * @param rank the rank whose line it is
   */
  MemorySegment sleep(int rank);

  /**
   * Returns a ring: {@link #HEADER} bytes, followed by data whose size is a power of two.
   *
   * @param from the rank that writes
   * @param to the rank that reads
   */
  MemorySegment ring(int from, int to);
}
