package dev.tutti.gloo.transport;

import java.lang.foreign.MemorySegment;

/** Combines bytes that arrive with what is in their place. */
public interface Combiner {
  /** Returns the bytes of an element, at most 16; elements arrive whole. */
  int unitBytes();

  /**
   * Combines some elements. Called with the transport's lock held, on whichever thread moves bytes.
   *
   * @param held memory of the receive; read and written
   * @param heldOffset first byte
   * @param received what came
   * @param offset first byte
   * @param bytes how many, a multiple of {@link #unitBytes()}
   */
  void combine(
      MemorySegment held, long heldOffset, MemorySegment received, long offset, long bytes);
}
