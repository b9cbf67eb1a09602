package dev.tutti.gloo;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.cpu.memory.SharedHeap;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;

/** Allocates memory in the shared heap, of which other tests may hold all that there is. */
public final class HeapMemory {
  private static final int ALIGNMENT = 64;

  private HeapMemory() {}

  /**
   * Allocates memory in the shared heap, collecting garbage until there is room.
   *
   * @param arena the arena that owns the memory
   * @param bytes the size in bytes
   */
  public static MemorySegment allocate(Arena arena, long bytes) {
    long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(100);
    MemorySegment memory = SharedHeap.allocate(arena, bytes, ALIGNMENT);
    while (!SharedHeap.has(memory)) {
      assertThat(System.nanoTime() - deadline).as("wait for shared heap").isNegative();
      System.gc();
      LockSupport.parkNanos(10_000_000); // the collector's threads give the memory back
      memory = SharedHeap.allocate(arena, bytes, ALIGNMENT);
    }
    return memory;
  }
}
