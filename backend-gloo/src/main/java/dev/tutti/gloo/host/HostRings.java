package dev.tutti.gloo.host;

import dev.tutti.gloo.transport.RingMemory;
import java.lang.foreign.MemorySegment;

/** Finds the rings in the memory that the ranks of a host share. */
final class HostRings implements RingMemory {
  private final HostMemory memory;
  private final HostLayout layout;

  HostRings(HostMemory memory, HostLayout layout) {
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
