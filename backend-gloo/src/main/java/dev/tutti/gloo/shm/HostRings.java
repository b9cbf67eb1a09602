package dev.tutti.gloo.shm;

import dev.tutti.gloo.transport.ring.RingMemory;
import java.lang.foreign.MemorySegment;

/** Locates the rings in the memory that the ranks of a host share. */
public final class HostRings implements RingMemory {
  private final ShmFile memory;
  private final ShmLayout layout;

  public HostRings(ShmFile memory, ShmLayout layout) {
    this.memory = memory;
    this.layout = layout;
  }

  @Override
  public MemorySegment sleep(int rank) {
    return memory.segment().asSlice(layout.sleep(rank), LINE);
  }

  @Override
  public MemorySegment ring(int from, int to) {
    return memory.segment().asSlice(layout.ring(from, to), HEADER + layout.ringBytes());
  }
}
