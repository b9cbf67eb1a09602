package dev.tutti.kernels;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/**
 * Writes the structure that says what a rank sends to and gets from each rank. Both sides of a pair
 * must state the same bytes; each pair of all-gathers, gathers, scatters, all-to-alls, small
 * broadcasts, sends and receives is one. One thread uses it; a launch copies it.
 */
public final class ExchangeCall {
  /** The size of the structure. */
  public static final int BYTES = 4 * 8 * ChannelLayout.MAX_RANKS + 16;

  private static final int ROW = 8 * ChannelLayout.MAX_RANKS;

  private final MemorySegment memory;

  /**
   * Creates a writer.
   *
   * @param memory {@link #BYTES} bytes, aligned to 8
   */
  public ExchangeCall(MemorySegment memory) {
    this.memory = memory.asSlice(0, BYTES);
  }

  /** Returns the structure, to pass by value. */
  public MemorySegment memory() {
    return memory;
  }

  /**
   * Begins a call in which nobody sends anything yet.
   *
   * @param packetLimit the most bytes of a pair that go by packets, the same on all ranks and at
   *     most {@link ChannelLayout#messageCapacity}
   * @param timeoutNanos from when a wait begins; 0 for none
   */
  public ExchangeCall begin(long packetLimit, long timeoutNanos) {
    memory.fill((byte) 0);
    memory.set(ValueLayout.JAVA_LONG, 4 * ROW, packetLimit);
    memory.set(ValueLayout.JAVA_LONG, 4 * ROW + 8, timeoutNanos);
    return this;
  }

  /**
   * Sets what goes to a rank; to itself, it is copied unless it is there already.
   *
   * @param peer to whom
   * @param address device address
   * @param bytes length
   */
  public ExchangeCall send(int peer, long address, long bytes) {
    memory.set(ValueLayout.JAVA_LONG, 8L * peer, address);
    memory.set(ValueLayout.JAVA_LONG, 2 * ROW + 8L * peer, bytes);
    return this;
  }

  /**
   * Sets what comes from a rank.
   *
   * @param peer from whom
   * @param address device address
   * @param bytes length
   */
  public ExchangeCall receive(int peer, long address, long bytes) {
    memory.set(ValueLayout.JAVA_LONG, ROW + 8L * peer, address);
    memory.set(ValueLayout.JAVA_LONG, 3 * ROW + 8L * peer, bytes);
    return this;
  }
}
