package dev.tutti.gloo.shm;

import dev.tutti.gloo.transport.ring.RingMemory;
import java.lang.foreign.MemorySegment;

/** Locates the rings in the memory that the ranks of a host share. */
public record HostRings(ShmFile memory, ShmLayout layout) implements RingMemory {
  @Override
  public MemorySegment sleep(int rank) {
    return memory.segment().asSlice(layout.sleep(rank), LINE);
  }

  @Override
  public MemorySegment ring(int from, int to) {
    return memory.segment().asSlice(layout.ring(from, to), HEADER + layout.ringBytes());
  }
}
