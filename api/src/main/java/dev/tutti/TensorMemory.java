package dev.tutti;

import dev.tutti.spi.TensorAllocator;

/** The allocator of tensor memory, looked up once. */
final class TensorMemory {
  static final TensorAllocator ALLOCATOR = find();

  private TensorMemory() {}

  /** Returns the allocator that a module provides, or else one that uses the JDK's arenas. */
  static TensorAllocator find() {
    TensorAllocator found = Services.find(TensorAllocator.class, "allocate tensors");
    return found == null ? new ArenaAllocator() : found;
  }
}
