package dev.tutti.gloo.algorithm;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;

/** Keeps memory for what arrives before it is reduced; grows and never shrinks. */
public final class Scratch {
  private static final long ALIGNMENT = 64;

  private MemorySegment memory = MemorySegment.NULL;

  /**
   * Returns memory of at least a size, with whatever content.
   *
   * @param bytes the size
   */
  public MemorySegment atLeast(long bytes) {
    if (memory.byteSize() < bytes) {
      memory = Arena.ofAuto().allocate(bytes, ALIGNMENT);
    }
    return memory;
  }
}
