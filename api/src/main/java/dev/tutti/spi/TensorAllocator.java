package dev.tutti.spi;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;

/**
 * An allocator of tensors' host memory, found once by {@link java.util.ServiceLoader}. Without one,
 * the JDK allocates the memory. All methods may be called from any thread.
 */
public interface TensorAllocator {
  /**
   * Allocates zeroed memory that lives as long as it is reachable.
   *
   * @param bytes the number of bytes
   * @param alignment the alignment of the first byte
   */
  MemorySegment allocate(long bytes, long alignment);

  /**
   * Allocates zeroed memory that lives as long as an arena.
   *
   * @param arena the arena that owns the memory
   * @param bytes the number of bytes
   * @param alignment the alignment of the first byte
   */
  MemorySegment allocate(Arena arena, long bytes, long alignment);
}
