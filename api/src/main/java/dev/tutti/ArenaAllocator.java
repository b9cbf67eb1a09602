package dev.tutti;

import dev.tutti.spi.TensorAllocator;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;

/** The allocator used when no module provides one; it allocates tensors in the JDK's arenas. */
final class ArenaAllocator implements TensorAllocator {
  @Override
  public MemorySegment allocate(long bytes, long alignment) {
    return allocate(Arena.ofAuto(), bytes, alignment);
  }

  @Override
  public MemorySegment allocate(Arena arena, long bytes, long alignment) {
    return arena.allocate(bytes, alignment);
  }
}
