package dev.tutti.checkpoint;

import dev.tutti.Tensor;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;

/**
 * Memory for one snapshot after the other, allocated anew only for a larger one. The system gives a
 * process new memory slowly, so another thread can allocate it before it is used.
 */
final class Buffer implements AutoCloseable {
  private final Object state = new Object();
  private Arena arena = Arena.ofShared();
  private MemorySegment memory = MemorySegment.NULL;
  private boolean closed;

  /**
   * Returns memory of a size in bytes; that of the call before is no longer valid. Waits for a
   * thread that allocates it.
   */
  synchronized MemorySegment ofSize(long bytes) {
    if (memory.byteSize() < bytes) {
      memory = MemorySegment.NULL;
      replace(Arena.ofShared());
      Arena fresh = Arena.ofShared();
      try {
        memory = fresh.allocate(bytes, Tensor.ALIGNMENT);
      } finally {
        replace(fresh);
      }
    }
    return memory.asSlice(0, bytes);
  }

  private void replace(Arena fresh) {
    synchronized (state) {
      (closed ? fresh : arena).close();
      arena = closed ? arena : fresh;
    }
  }

  /** Frees the memory; if a thread is allocating some, it frees that itself. */
  @Override
  public void close() {
    synchronized (state) {
      closed = true;
      arena.close();
    }
  }
}
