package dev.tutti.cuda.collective;

/**
 * Divides the memory of a symmetric allocation: the signal pad, then the buffer.
 *
 * @param group name of the group
 * @param rank this rank
 * @param size number of ranks
 * @param padBytes where the buffer begins
 * @param bufferBytes bytes of the buffer
 * @param number by which kernels know it, the same on all ranks; 0 where they shall not
 */
record SymmetricPlan(
    String group, int rank, int size, long padBytes, long bufferBytes, int number) {
  /** Returns the bytes of the words of so many channels. */
  static long wordBytes(int channels, int size) {
    return 2L * Integer.BYTES * channels * size;
  }

  /** Returns where the signal of a rank is in the receiver's pad. */
  long word(int channel, int sender) {
    return (long) Integer.BYTES * (channel * size + sender);
  }

  /** Returns where the words of barriers begin in a pad, behind those of signals. */
  long barriers(int channels) {
    return (long) Integer.BYTES * channels * size;
  }
}
