package dev.tutti.gloo.shm;

/**
 * The layout of the memory of one symmetric allocation: a header as in {@link ShmLayout}, a buffer
 * for each rank on pages of its own, and the signal pad.
 *
 * @param ranks the number of ranks
 * @param bufferBytes the size of each buffer in bytes
 */
record SymmetricLayout(int ranks, long bufferBytes) {
  /*
   * In the pad each channel has a line for its barrier and lines in which the ranks note that they
   * wait there. It also has one line for each pair of ranks, since both ranks of a pair write its
   * two words.
   */

  /** The number of channels, equal to the number of blocks of c10d's kernels. */
  static final int CHANNELS = 32;

  private static final long PAGE = 4096;
  private static final long LINE = 64;

  /**
   * Returns the total number of bytes.
   *
   * @throws ArithmeticException if it overflows
   */
  long bytes() {
    long stride = Math.multiplyExact(Math.ceilDiv(bufferBytes, PAGE), PAGE);
    long buffers = Math.multiplyExact(stride, ranks);
    return Math.addExact(
        Math.addExact(ShmLayout.headerBytes(ranks), buffers), CHANNELS * channelBytes());
  }

  /** Returns the offset of the buffer of a rank. */
  long buffer(int rank) {
    return ShmLayout.headerBytes(ranks) + rank * Math.ceilDiv(bufferBytes, PAGE) * PAGE;
  }

  /** Returns the offset of the barrier of a channel. */
  long barrier(int channel) {
    return buffer(ranks) + channel * channelBytes();
  }

  /**
   * Returns the offset at which a rank notes the round of a channel's barrier in which it waits.
   */
  long waiting(int channel, int rank) {
    return barrier(channel) + LINE + 8L * rank;
  }

  /** Returns the offset of the signal from one rank to another, or from a rank to itself. */
  long signal(int channel, int from, int to) {
    int low = Math.min(from, to);
    long high = Math.max(from, to);
    long pair = high * (high + 1) / 2 + low;
    return barrier(channel) + LINE + waitingBytes() + pair * LINE + (to == low ? 0 : 8);
  }

  private long waitingBytes() {
    return Math.ceilDiv(8L * ranks, LINE) * LINE;
  }

  private long channelBytes() {
    return LINE + waitingBytes() + ranks * (ranks + 1L) / 2 * LINE;
  }
}
