package dev.tutti;

import dev.tutti.spi.TensorAllocator;
import java.util.ServiceLoader;

/** Finds what allocates the memory of tensors, once. */
final class TensorMemory {
  static final TensorAllocator ALLOCATOR = find();

  private TensorMemory() {}

  /** Returns what a module provides, else the JDK's arenas. */
  static TensorAllocator find() {
    ClassLoader own = TensorMemory.class.getClassLoader();
    TensorAllocator found =
        Services.only(
            "allocate tensors",
            Services.distinct(
                ServiceLoader.load(TensorAllocator.class, own),
                ServiceLoader.load(TensorAllocator.class)));
    return found == null ? new ArenaAllocator() : found;
  }
}
