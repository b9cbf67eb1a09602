package dev.tutti.cuda.driver;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.ref.Reference;

/**
 * The native block from which a launch reads a kernel's parameters, allocated once and reused. Not
 * thread-safe: one thread at a time may fill it and launch.
 */
public final class LaunchParameters {
  private static final long SLOT = Long.BYTES;

  private final MemorySegment block;
  private final long values;
  private final int count;

  /**
   * Allocates a block.
   *
   * @param count the number of the kernel's parameters, each of at most 8 bytes
   */
  public LaunchParameters(int count) {
    this.count = count;
    this.values = count * SLOT;
    this.block = Arena.ofAuto().allocate(2 * values, SLOT);
    for (int i = 0; i < count; i++) {
      block.setAtIndex(ValueLayout.JAVA_LONG, i, block.address() + values + i * SLOT);
    }
  }

  /** Sets an 8-byte parameter, such as an address. */
  public void set(int index, long value) {
    block.set(ValueLayout.JAVA_LONG, offset(index), value);
  }

  /** Sets a 4-byte parameter. */
  public void set(int index, int value) {
    block.set(ValueLayout.JAVA_INT, offset(index), value);
  }

  /** Sets a 4-byte parameter. */
  public void set(int index, float value) {
    block.set(ValueLayout.JAVA_FLOAT, offset(index), value);
  }

  private long offset(int index) {
    if (index < 0 || index >= count) {
      throw new IndexOutOfBoundsException("parameter " + index + " of " + count);
    }
    return values + index * SLOT;
  }

  /**
   * Launches a kernel with these parameters. Allocates nothing.
   *
   * @param kernels the calls to launch with
   * @param function the kernel
   * @param blocks the number of blocks in the grid
   * @param threads the number of threads per block
   * @param stream the stream to launch into
   */
  public void launch(KernelCalls kernels, long function, int blocks, int threads, long stream) {
    try {
      kernels.launch(function, blocks, threads, stream, block.address());
    } finally {
      Reference.reachabilityFence(this);
    }
  }

  /** Returns the address for {@link KernelCalls#launch}; valid while this object is reachable. */
  long address() {
    return block.address();
  }
}
