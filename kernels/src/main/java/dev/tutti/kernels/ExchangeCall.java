package dev.tutti.kernels;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/**
 * Writes the structure that specifies what a rank sends to and receives from each rank. Both sides
 * of a pair must specify the same number of bytes. All-gathers, gathers, scatters, all-to-alls,
 * small broadcasts, sends and receives consist of such pairs. One thread uses it; a launch copies
 * it.
 */
public final class ExchangeCall {
  /** The size of the structure in bytes. */
  public static final int BYTES = 4 * 8 * ChannelLayout.MAX_RANKS + 16;

  private static final int ROW = 8 * ChannelLayout.MAX_RANKS;

  private final MemorySegment memory;

  /**
   * Creates a writer.
   *
   * @param memory the memory to write, {@link #BYTES} bytes, aligned to 8
   */
  public ExchangeCall(MemorySegment memory) {
    this.memory = memory.asSlice(0, BYTES);
  }

  /** Returns the structure, to be passed by value. */
  public MemorySegment memory() {
    return memory;
  }

  /**
   * Begins a call in which no rank sends anything yet.
   *
   * @param packetLimit the maximum number of bytes of a pair that go in packets, the same on all
   *     ranks and at most {@link ChannelLayout#messageCapacity}
   * @param timeoutNanos the time allowed from the beginning of a wait; 0 for no limit
   */
  public ExchangeCall begin(long packetLimit, long timeoutNanos) {
    memory.fill((byte) 0);
    memory.set(ValueLayout.JAVA_LONG, 4 * ROW, packetLimit);
    memory.set(ValueLayout.JAVA_LONG, 4 * ROW + 8, timeoutNanos);
    return this;
  }

  /**
   * Sets the data to send to a rank. Data for this rank itself is copied, unless it is already in
   * place.
   *
   * @param peer the receiving rank
   * @param address the device address
   * @param bytes the number of bytes
   */
  public ExchangeCall send(int peer, long address, long bytes) {
    memory.set(ValueLayout.JAVA_LONG, 8L * peer, address);
    memory.set(ValueLayout.JAVA_LONG, 2 * ROW + 8L * peer, bytes);
    return this;
  }

  /**
   * Sets the memory for data from a rank.
   *
   * @param peer the sending rank
   * @param address the device address
   * @param bytes the number of bytes
   */
  public ExchangeCall receive(int peer, long address, long bytes) {
    memory.set(ValueLayout.JAVA_LONG, ROW + 8L * peer, address);
    memory.set(ValueLayout.JAVA_LONG, 3 * ROW + 8L * peer, bytes);
    return this;
  }
}
