package dev.tutti.spi;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;

/**
 * Allocates the memory of tensors in host memory; found once by {@link java.util.ServiceLoader}.
 * Without one the JDK allocates it. May be called from any thread.
 */
public interface TensorAllocator {
  /**
   * Allocates zeroed memory that lives as long as it is reachable.
   *
   * @param bytes how many
   * @param alignment of the first byte
   */
  MemorySegment allocate(long bytes, long alignment);

  /**
   * Allocates zeroed memory that lives as long as an arena.
   *
   * @param arena owns the memory
   * @param bytes how many
   * @param alignment of the first byte
   */
  MemorySegment allocate(Arena arena, long bytes, long alignment);
}
