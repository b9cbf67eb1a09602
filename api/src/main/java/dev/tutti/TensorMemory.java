package dev.tutti;

import dev.tutti.spi.TensorAllocator;

/** Finds what allocates the memory of tensors, once. */
final class TensorMemory {
  static final TensorAllocator ALLOCATOR = find();

  private TensorMemory() {}

  /** Returns what a module provides, else the JDK's arenas. */
  static TensorAllocator find() {
    TensorAllocator found = Services.find(TensorAllocator.class, "allocate tensors");
    return found == null ? new ArenaAllocator() : found;
  }
}
