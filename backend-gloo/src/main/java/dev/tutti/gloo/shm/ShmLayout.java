package dev.tutti.gloo.shm;

import dev.tutti.gloo.transport.ring.RingMemory;

/**
 * The layout of the memory that the ranks of a host share.
 *
 * <p>The memory begins with a header. For each rank there follow a control line, two slots for
 * small messages, and {@link #DEPTH} stages for parts of large messages; then for each rank the
 * line that says whether it is asleep, and for each two ranks two rings for messages. Each of these
 * begins on a line of its own.
 *
 * @param ranks the number of ranks
 * @param stageBytes the size of one stage in bytes
 * @param ringBytes the capacity of a ring in bytes, or 0 if there are none
 */
public record ShmLayout(int ranks, long stageBytes, long ringBytes) {
  /** The largest message in bytes that goes through a slot. */
  public static final int SLOT_BYTES = 8192;

  /** The maximum number of ranks of a host: each shows three words, and three for every rank. */
  static final int MAX_RANKS = SLOT_BYTES / (3 * Long.BYTES) - 1;

  /** The number of steps of a large message that may be in progress at a time. */
  static final int DEPTH = 2;

  /**
   * The offset in a slot at which its data begins, after the number and the signature of the
   * operation.
   */
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
  private static final long MAX_RING = 256 * 1024;
  private static final long MIN_RING = PAGE;
  private static final int RING_SHARE = 4;
  private static final long JOINED = 64;

  /**
   * Divides a number of bytes; up to a quarter is for rings. There are no rings if there are too
   * many ranks.
   *
   * @param budget the total number of bytes
   * @throws IllegalArgumentException if the budget is too small, or there are too many ranks
   */
  public static ShmLayout within(int ranks, long budget) {
    if (ranks > MAX_RANKS) {
      throw new IllegalArgumentException(
          ranks + " ranks are too many to share memory; the limit is " + MAX_RANKS);
    }
    long leastStage = leastStage(ranks);
    ShmLayout layout = within(ranks, budget, ringWithin(ranks, budget / RING_SHARE));
    if (layout.stageBytes < leastStage) {
      layout = within(ranks, budget, 0);
    }
    if (layout.stageBytes < leastStage) {
      long least = new ShmLayout(ranks, leastStage, 0).bytes();
      throw new IllegalArgumentException(
          ranks + " ranks need at least " + least + " bytes of shared memory, not " + budget);
    }
    return layout;
  }

  /** Returns the smallest layout, for a rank that is alone on its host. */
  public static ShmLayout ofOne() {
    return new ShmLayout(1, leastStage(1), 0);
  }

  /** Returns the number of bytes of a stage in which each rank has a piece. */
  private static long leastStage(int ranks) {
    return roundUp(ranks * Parts.LINE, PAGE);
  }

  private static ShmLayout within(int ranks, long budget, long ringBytes) {
    long others = new ShmLayout(ranks, 0, ringBytes).bytes();
    long each = (budget - others) / ranks / DEPTH;
    return new ShmLayout(ranks, Math.min(MAX_STAGE, each / PAGE * PAGE), ringBytes);
  }

  private static long ringWithin(int ranks, long budget) {
    long ring = MAX_RING;
    while (ring >= MIN_RING && rings(ranks) * (RingMemory.HEADER + ring) > budget) {
      ring /= 2;
    }
    return ranks < 2 || ring < MIN_RING ? 0 : ring;
  }

  private static long rings(int ranks) {
    return ranks * (ranks - 1L);
  }

  /** Returns the total number of bytes. */
  public long bytes() {
    return ringBytes == 0 ? stage(ranks, 0) : ring(ranks, 0);
  }

  /** Returns the number of bytes of the header, in whole pages. */
  static long headerBytes(int ranks) {
    return roundUp(waiters(ranks) + LINE, PAGE);
  }

  /**
   * Returns the offset in the header at which the ranks count sleepers, see {@link
   * dev.tutti.cpu.wait.FutexWaiters}.
   */
  static long waiters(int ranks) {
    return roundUp(joined(ranks), LINE);
  }

  /** Returns the offset in the header at which a rank says that it has mapped the memory. */
  static long joined(int rank) {
    return JOINED + 8L * rank;
  }

  /** Returns the offset of the control line of a rank. */
  long control(int rank) {
    return headerBytes(ranks) + LINE * rank;
  }

  /** Returns the offset of one of the two slots of a rank. */
  long slot(int rank, int parity) {
    long stride = roundUp(SLOT_HEADER + SLOT_BYTES, LINE);
    return roundUp(control(ranks), PAGE) + (2L * rank + parity) * stride;
  }

  /** Returns the offset of a stage of a rank. */
  long stage(int rank, int index) {
    return roundUp(slot(ranks, 0), PAGE) + ((long) DEPTH * rank + index) * stageBytes;
  }

  /** Returns the offset at which a rank says that it is asleep. */
  long sleep(int rank) {
    return roundUp(stage(ranks, 0), PAGE) + LINE * rank;
  }

  /** Returns the offset of the ring through which a rank writes to another one. */
  long ring(int from, int to) {
    long index = (ranks - 1L) * from + (to < from ? to : to - 1);
    return roundUp(sleep(ranks), PAGE) + index * (RingMemory.HEADER + ringBytes);
  }

  private static long roundUp(long value, long unit) {
    return (value + unit - 1) / unit * unit;
  }
}
