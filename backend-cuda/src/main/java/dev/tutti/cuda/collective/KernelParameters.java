package dev.tutti.cuda.collective;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/**
 * What a launch reads its parameters from where some are structures: their addresses. One thread at
 * a time uses it.
 */
final class KernelParameters {
  private final MemorySegment addresses;

  KernelParameters(int count) {
    addresses = Arena.ofAuto().allocate((long) count * Long.BYTES, Long.BYTES);
  }

  /** Sets where a parameter is, which this does not keep reachable. */
  KernelParameters at(int index, MemorySegment parameter) {
    addresses.setAtIndex(ValueLayout.JAVA_LONG, index, parameter.address());
    return this;
  }

  long address() {
    return addresses.address();
  }
}
