package dev.tutti.kernels;

import dev.tutti.ReduceOp;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/**
 * Writes the structure of an all-reduce within symmetric memory. One thread uses it; a launch
 * copies it.
 */
public final class DirectCall {
  /** Is the size of the structure. */
  public static final int BYTES = 8 * ChannelLayout.MAX_RANKS + 24;

  private static final int BYTES_OFFSET = 8 * ChannelLayout.MAX_RANKS;

  private final MemorySegment memory;

  /**
   * Creates a writer.
   *
   * @param memory {@link #BYTES} bytes, aligned to 8
   */
  public DirectCall(MemorySegment memory) {
    this.memory = memory.asSlice(0, BYTES);
  }

  /** Returns the structure, to pass by value. */
  public MemorySegment memory() {
    return memory;
  }

  /**
   * Sets where a rank's elements are.
   *
   * @param rank whose
   * @param address as this rank addresses them; a multiple of 16
   */
  public DirectCall buffer(int rank, long address) {
    memory.setAtIndex(ValueLayout.JAVA_LONG, rank, address);
    return this;
  }

  /**
   * Sets the length, the operator and the deadline of each wait.
   *
   * @param bytes a multiple of 16
   * @param op SUM or AVG
   * @param timeoutNanos from when a wait begins; 0 for none
   */
  public DirectCall all(long bytes, ReduceOp op, long timeoutNanos) {
    memory.set(ValueLayout.JAVA_LONG, BYTES_OFFSET, bytes);
    memory.set(ValueLayout.JAVA_LONG, BYTES_OFFSET + 8, timeoutNanos);
    memory.set(ValueLayout.JAVA_INT, BYTES_OFFSET + 16, OpCodes.of(op.kind()));
    return this;
  }
}
