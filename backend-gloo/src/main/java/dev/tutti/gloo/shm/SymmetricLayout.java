package dev.tutti.gloo.shm;

/**
 * Divides the memory of one symmetric allocation: a header as in {@link ShmLayout}, a buffer of
 * each rank on pages of its own, and the signal pad.
 *
 * @param ranks number of ranks
 * @param bufferBytes bytes of each buffer
 */
record SymmetricLayout(int ranks, long bufferBytes) {
  /*
   * In the pad each channel has a line for its barrier, lines in which the ranks note that they wait
   * there, and a line for each pair of ranks, since the two words of a pair are written by both.
   */

  /** As many as c10d's kernels have blocks. */
  static final int CHANNELS = 32;

  private static final long PAGE = 4096;
  private static final long LINE = 64;

  /**
   * Returns the bytes of the whole.
   *
   * @throws ArithmeticException if there is no such number
   */
  long bytes() {
    long stride = Math.multiplyExact(Math.ceilDiv(bufferBytes, PAGE), PAGE);
    long buffers = Math.multiplyExact(stride, ranks);
    return Math.addExact(
        Math.addExact(ShmLayout.headerBytes(ranks), buffers), CHANNELS * channelBytes());
  }

  /** Returns where the buffer of a rank is. */
  long buffer(int rank) {
    return ShmLayout.headerBytes(ranks) + rank * Math.ceilDiv(bufferBytes, PAGE) * PAGE;
  }

  /** Returns where the barrier of a channel is. */
  long barrier(int channel) {
    return buffer(ranks) + channel * channelBytes();
  }

  /** Returns where a rank notes in which barrier of a channel it waits. */
  long waiting(int channel, int rank) {
    return barrier(channel) + LINE + 8L * rank;
  }

  /** Returns where the signal of one rank to another is; of a rank to itself, too. */
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
