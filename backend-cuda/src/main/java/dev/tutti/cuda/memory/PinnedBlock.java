package dev.tutti.cuda.memory;

import java.lang.foreign.MemorySegment;
import java.util.Arrays;

/**
 * A block of page-locked host memory that the device can access at the same address. {@link
 * PinnedAllocator} guards its state.
 */
public final class PinnedBlock {
  final int sizeClass;
  private final MemorySegment segment;
  private final long address;
  private long[] events = new long[1];
  private int eventCount;
  boolean free;

  PinnedBlock(MemorySegment segment, int sizeClass) {
    this.segment = segment;
    this.address = segment.address();
    this.sizeClass = sizeClass;
  }

  /** Returns the memory, which is valid until the block is freed. */
  public MemorySegment segment() {
    return segment;
  }

  /** Returns the address, which is the same for host and device. */
  public long address() {
    return address;
  }

  void addEvent(long event) {
    if (eventCount == events.length) {
      events = Arrays.copyOf(events, 2 * eventCount);
    }
    events[eventCount++] = event;
  }

  int eventCount() {
    return eventCount;
  }

  long lastEvent() {
    return events[eventCount - 1];
  }

  void dropLastEvent() {
    eventCount--;
  }
}
