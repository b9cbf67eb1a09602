package dev.tutti.cpu.memory;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.HashMap;
import java.util.Map;

/** The mapped memory of large tensors of a process, see {@link SharedHeap#map}. */
public final class HeapMapping {
  /** Holds each mapping once, by whose memory it is; also the lock of their users. */
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
   * Says whose memory it is.
   *
   * @param process its number
   * @param number which the memory begins with
   */
  record Owner(long process, long number) {}

  /** Maps memory. */
  interface Mapper {
    MemorySegment map(Arena arena) throws IOException;
  }

  /**
   * Returns the mapping of a process's memory, made if need be.
   *
   * @param owner whose memory
   * @param byteSize how long it must be
   * @param mapper maps it
   * @throws IOException if it cannot be mapped, or is of another length
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
            "process " + owner.process + " has " + bytes + " bytes, not " + byteSize);
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

  /** Returns the memory, to be read until this is closed. */
  public MemorySegment memory() {
    return memory;
  }

  /** Unmaps it if nobody else has it; to be called once by each who mapped it. */
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
