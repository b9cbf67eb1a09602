package dev.tutti.cpu.memory;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.HashMap;
import java.util.Map;

/**
 * The mapping of the memory that holds the large tensors of a process, see {@link SharedHeap#map}.
 */
public final class HeapMapping {
  /** Holds each mapping once, by the owner of its memory; also the lock for their users. */
  private static final Map<Owner, HeapMapping> ALL = new HashMap<>();

  private final Owner owner;
  private final Arena arena;
  private final MemorySegment memory;
  private int users;

  private HeapMapping(Owner owner, Arena arena, MemorySegment memory) {
    this.owner = owner;
    this.arena = arena;
    this.memory = memory;
  }

  /**
   * The owner of the memory.
   *
   * @param process the process id
   * @param number the number with which the memory begins
   */
  record Owner(long process, long number) {}

  /** Maps memory. */
  interface Mapper {
    MemorySegment map(Arena arena) throws IOException;
  }

  /**
   * Returns the mapping of a process's memory, creating it if necessary.
   *
   * @param owner the owner of the memory
   * @param byteSize the length that the memory must have
   * @param mapper maps the memory
   * @throws IOException if the memory cannot be mapped, or has another length
   */
  static HeapMapping of(Owner owner, long byteSize, Mapper mapper) throws IOException {
    synchronized (ALL) {
      HeapMapping mapping = ALL.get(owner);
      if (mapping == null) {
        mapping = make(owner, mapper);
        ALL.put(owner, mapping);
      }
      long bytes = mapping.memory.byteSize();
      if (bytes != byteSize) {
        throw new IOException(
            "process " + owner.process + " shares " + bytes + " bytes, not " + byteSize);
      }
      mapping.users++;
      return mapping;
    }
  }

  private static HeapMapping make(Owner owner, Mapper mapper) throws IOException {
    Arena arena = Arena.ofShared();
    try {
      return new HeapMapping(owner, arena, mapper.map(arena));
    } catch (IOException | RuntimeException | Error e) {
      arena.close();
      throw e;
    }
  }

  /** Returns the memory, which may be read until this mapping is closed. */
  public MemorySegment memory() {
    return memory;
  }

  /** Unmaps the memory if it has no other user; each user must call this once. */
  public void close() {
    boolean unused;
    synchronized (ALL) {
      users--;
      unused = users == 0;
      if (unused) {
        ALL.remove(owner);
      }
    }
    if (unused) {
      arena.close();
    }
  }
}
