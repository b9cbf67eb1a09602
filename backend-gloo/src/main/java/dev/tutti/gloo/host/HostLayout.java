package dev.tutti.gloo.host;

/**
 * Divides the memory that the ranks of a host share.
 *
 * <p>First a header, then for each rank a control line, two slots for small messages, and {@link
 * #DEPTH} stages for parts of large ones. All begin on lines of their own.
 *
 * @param ranks number of ranks
 * @param stageBytes bytes of one stage
 */
record HostLayout(int ranks, long stageBytes) {
  /** Largest message that goes through a slot, in bytes. */
  static final int SLOT_BYTES = 8192;

  /** Steps of a large message that may be under way at a time. */
  static final int DEPTH = 2;

  /** Where in a slot its bytes begin, behind the number and the signature of the operation. */
  static final int SLOT_HEADER = 16;

  // Words of a control line.
  static final int OPERATION = 0;
  static final int SIGNATURES = 8;
  static final int PUBLISHED = 24;
  static final int REDUCED = 32;
  static final int FINISHED = 40;
  static final int STAGED = 48;

  private static final long LINE = 128;
  private static final long PAGE = 4096;
  private static final long MAX_STAGE = 256 * 1024;
  private static final long MIN_STAGE = PAGE;
  private static final long JOINED = 64;

  /**
   * Divides a number of bytes.
   *
   * @param ranks number of ranks
   * @param budget bytes in all
   * @throws IllegalArgumentException if that is too little
   */
  static HostLayout within(int ranks, long budget) {
    HostLayout empty = new HostLayout(ranks, 0);
    long each = (budget - empty.bytes()) / ranks / DEPTH;
    long stage = Math.min(MAX_STAGE, each / PAGE * PAGE);
    if (stage < MIN_STAGE) {
      long least = new HostLayout(ranks, MIN_STAGE).bytes();
      throw new IllegalArgumentException(
          ranks + " ranks need at least " + least + " bytes of shared memory, not " + budget);
    }
    return new HostLayout(ranks, stage);
  }

  /** Returns the bytes of the whole. */
  long bytes() {
    return stage(ranks, 0);
  }

  /** Returns the bytes of the header, whole pages. */
  static long headerBytes(int ranks) {
    return roundUp(joined(ranks), PAGE);
  }

  /** Returns where in the header a rank says that it has mapped the memory. */
  static long joined(int rank) {
    return JOINED + 8L * rank;
  }

  /** Returns where the control line of a rank is. */
  long control(int rank) {
    return headerBytes(ranks) + LINE * rank;
  }

  /** Returns where one of the two slots of a rank is. */
  long slot(int rank, int parity) {
    long stride = roundUp(SLOT_HEADER + SLOT_BYTES, LINE);
    return roundUp(control(ranks), PAGE) + (2L * rank + parity) * stride;
  }

  /** Returns where a stage of a rank is. */
  long stage(int rank, int index) {
    return roundUp(slot(ranks, 0), PAGE) + ((long) DEPTH * rank + index) * stageBytes;
  }

  private static long roundUp(long value, long unit) {
    return (value + unit - 1) / unit * unit;
  }
}
