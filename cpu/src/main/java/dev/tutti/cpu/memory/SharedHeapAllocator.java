package dev.tutti.cpu.memory;

import dev.tutti.spi.TensorAllocator;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;

/** Allocates tensors of 32 KiB or more in the {@link SharedHeap} if the system allows it. */
public final class SharedHeapAllocator implements TensorAllocator {
  /** Creates the allocator; for {@link java.util.ServiceLoader}. */
  public SharedHeapAllocator() {}

  @Override
  public MemorySegment allocate(long bytes, long alignment) {
    return SharedHeap.allocate(bytes, alignment);
  }

  @Override
  public MemorySegment allocate(Arena arena, long bytes, long alignment) {
    return SharedHeap.allocate(arena, bytes, alignment);
  }
}
