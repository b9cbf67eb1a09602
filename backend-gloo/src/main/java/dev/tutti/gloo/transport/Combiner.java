package dev.tutti.gloo.transport;

import java.lang.foreign.MemorySegment;

/** Combines arriving bytes with the bytes already in their place. */
public interface Combiner {
  /** Returns the size of an element in bytes, at most 16; elements arrive whole. */
  int unitBytes();

  /**
   * Combines some elements. Called with the transport's lock held, on whichever thread moves bytes.
   *
   * @param held the memory of the receive; read and written
   * @param heldOffset the offset of the first byte in it
   * @param received the memory with the arrived bytes
   * @param offset the offset of the first byte in it
   * @param bytes the number of bytes, a multiple of {@link #unitBytes()}
   */
  void combine(
      MemorySegment held, long heldOffset, MemorySegment received, long offset, long bytes);
}
