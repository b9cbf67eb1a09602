package dev.tutti.cuda.collective;

/**
 * The layout of a symmetric allocation's memory: the signal pad, then the buffer.
 *
 * @param group the name of the group
 * @param rank this rank's number
 * @param size the number of ranks
 * @param padBytes the offset at which the buffer begins
 * @param bufferBytes the size of the buffer
 * @param number the number of the memory for kernels, the same on all ranks; 0 if it has none
 */
record SymmetricPlan(
    String group, int rank, int size, long padBytes, long bufferBytes, int number) {
  static final int CHANNELS = 32;

  /** Returns the number of bytes in the words of all channels. */
  static long wordBytes(int size) {
    return 2L * Integer.BYTES * CHANNELS * size;
  }

  /** Returns the offset of a sender's signal in the receiver's pad. */
  long word(int channel, int sender) {
    return (long) Integer.BYTES * (channel * size + sender);
  }

  /** Returns the offset at which the barrier words begin in a pad, after the signal words. */
  long barriers() {
    return (long) Integer.BYTES * CHANNELS * size;
  }
}
