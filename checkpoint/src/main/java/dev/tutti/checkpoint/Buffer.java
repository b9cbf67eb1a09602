package dev.tutti.checkpoint;

import dev.tutti.Tensor;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;

/** Memory for one snapshot after the other, allocated anew only for a larger one. */
final class Buffer implements AutoCloseable {
  private Arena arena = Arena.ofShared();
  private MemorySegment memory = MemorySegment.NULL;

  /** Returns memory of a size in bytes; that of the call before is no longer valid. */
  MemorySegment ofSize(long bytes) {
    if (memory.byteSize() < bytes) {
      arena.close();
      memory = MemorySegment.NULL;
      arena = Arena.ofShared();
      memory = arena.allocate(bytes, Tensor.ALIGNMENT);
    }
    return memory.asSlice(0, bytes);
  }

  @Override
  public void close() {
    arena.close();
  }
}
