package dev.tutti;

/**
 * The algorithms that {@link CallOptions#withAlgorithm} can request for an all-reduce (c10d: {@code
 * AllReduceAlgo}). Each backend supports some of them.
 */
public enum AllReduceAlgorithm {
  /** The algorithm that the backend expects to be the fastest. */
  AUTO("auto"),
  /**
   * Every rank reads all tensors and reduces them itself: <i>cuda</i>, <i>gloo</i> in shared
   * memory.
   */
  ONE_SHOT("one-shot"),
  /** Every rank reduces one part, then reads the parts of the others: <i>cuda</i>. */
  TWO_SHOT("two-shot"),
  /** Two-shot, one chunk at a time: <i>cuda</i>. */
  CHUNKS("chunks"),
  /** Ranks copy pieces through memory that they all share: <i>gloo</i> in shared memory. */
  STAGED("staged"),
  /** Ranks read each other's tensors in place: <i>gloo</i> in shared memory. */
  DIRECT("direct"),
  /** Ranks write results into each other's symmetric memory: <i>gloo</i> in shared memory. */
  SYMMETRIC("symmetric"),
  /** The ring algorithm of Gloo: <i>gloo</i> over sockets, including groups with PyTorch ranks. */
  RING("ring"),
  /** Pairs of ranks exchange whole tensors: <i>gloo</i> over sockets. */
  RECURSIVE_DOUBLING("recursive-doubling"),
  /**
   * Pairs of ranks exchange ever smaller halves, then ever larger ones: <i>gloo</i> over sockets.
   */
  HALVING_DOUBLING("halving-doubling"),
  /** Halving-doubling in pieces: <i>gloo</i> over sockets. */
  PIPELINED_HALVING_DOUBLING("pipelined-halving-doubling"),
  /** Shared memory within a host, sockets between hosts: <i>gloo</i> across several hosts. */
  TWO_LEVEL("two-level");

  private final String label;

  AllReduceAlgorithm(String label) {
    this.label = label;
  }

  /**
   * Returns the name used in messages and at the end of the keys of {@link
   * ProcessGroup#usageByPath}.
   */
  public String label() {
    return label;
  }
}
