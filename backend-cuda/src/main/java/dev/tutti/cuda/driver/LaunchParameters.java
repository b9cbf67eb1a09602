package dev.tutti.cuda.driver;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.ref.Reference;

/**
 * The native block that a launch reads a kernel's parameters from, made once and used again. One
 * thread at a time fills it and launches.
 */
public final class LaunchParameters {
  private static final long SLOT = Long.BYTES;

  private final MemorySegment block;
  private final long values;
  private final int count;

  /**
   * Allocates a block.
   *
   * @param count how many parameters the kernel has, of 8 bytes at most each
   */
  public LaunchParameters(int count) {
    this.count = count;
    this.values = count * SLOT;
    this.block = Arena.ofAuto().allocate(2 * values, SLOT);
    for (int i = 0; i < count; i++) {
      block.setAtIndex(ValueLayout.JAVA_LONG, i, block.address() + values + i * SLOT);
    }
  }

  /** Sets a parameter of 8 bytes, such as an address. */
  public void set(int index, long value) {
    block.set(ValueLayout.JAVA_LONG, offset(index), value);
  }

  /** Sets a parameter of 4 bytes. */
  public void set(int index, int value) {
    block.set(ValueLayout.JAVA_INT, offset(index), value);
  }

  /** Sets a parameter of 4 bytes. */
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
   * @param kernels who launches
   * @param function the kernel
   * @param blocks blocks of the grid
   * @param threads threads of a block
   * @param sharedBytes dynamic shared memory of a block
   * @param stream where to
   */
  public void launch(
      KernelCalls kernels, long function, int blocks, int threads, int sharedBytes, long stream) {
    try {
      kernels.launch(function, blocks, 1, 1, threads, 1, 1, sharedBytes, stream, block.address());
    } finally {
      Reference.reachabilityFence(this);
    }
  }

  /** Returns what {@link KernelCalls#launch} takes; valid while this object is reachable. */
  long address() {
    return block.address();
  }
}
