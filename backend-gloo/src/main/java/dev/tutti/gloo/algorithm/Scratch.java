package dev.tutti.gloo.algorithm;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;

/** Memory for data that has arrived but is not yet reduced; it grows and never shrinks. */
public final class Scratch {
  private static final long ALIGNMENT = 64;

  private MemorySegment memory = MemorySegment.NULL;

  /**
   * Returns memory of at least the given size, with arbitrary content.
   *
   * @param bytes the minimum size in bytes
   */
  public MemorySegment atLeast(long bytes) {
    if (memory.byteSize() < bytes) {
      memory = Arena.ofAuto().allocate(bytes, ALIGNMENT);
    }
    return memory;
  }
}
