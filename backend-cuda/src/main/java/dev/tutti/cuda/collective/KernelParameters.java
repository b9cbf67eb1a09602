package dev.tutti.cuda.collective;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/**
 * The array from which a launch reads its parameters' addresses, for kernels that take structures.
 * Not thread-safe.
 */
final class KernelParameters {
  private final MemorySegment addresses;

  KernelParameters(int count) {
    addresses = Arena.ofAuto().allocate((long) count * Long.BYTES, Long.BYTES);
  }

  /** Sets the address of a parameter; does not keep the parameter reachable. */
  KernelParameters at(int index, MemorySegment parameter) {
    addresses.setAtIndex(ValueLayout.JAVA_LONG, index, parameter.address());
    return this;
  }

  long address() {
    return addresses.address();
  }
}
