package dev.tutti;

/**
 * Names the algorithms of an all-reduce that can be asked for by {@link CallOptions#withAlgorithm}
 * (c10d: {@code AllReduceAlgo}). Each backend has some of them.
 */
public enum AllReduceAlgorithm {
  /** Whatever the backend takes to be the fastest. */
  AUTO("auto"),
  /** Every rank reads all tensors and reduces them: <i>cuda</i>, <i>gloo</i> in shared memory. */
  ONE_SHOT("one-shot"),
  /** Every rank reduces a part, then reads the parts of the others: <i>cuda</i>. */
  TWO_SHOT("two-shot"),
  /** Two-shot, a chunk at a time: <i>cuda</i>. */
  CHUNKS("chunks"),
  /** Ranks copy pieces through memory that all share: <i>gloo</i> in shared memory. */
  STAGED("staged"),
  /** Ranks read each other's tensors where they are: <i>gloo</i> in shared memory. */
  DIRECT("direct"),
  /** Ranks write results into each other's symmetric memory: <i>gloo</i> in shared memory. */
  SYMMETRIC("symmetric"),
  /** Gloo's ring: <i>gloo</i> over sockets, also with ranks of PyTorch. */
  RING("ring"),
  /** Pairs of ranks exchange whole tensors: <i>gloo</i> over sockets. */
  RECURSIVE_DOUBLING("recursive-doubling"),
  /** Pairs of ranks exchange ever smaller halves, and back: <i>gloo</i> over sockets. */
  HALVING_DOUBLING("halving-doubling"),
  /** Halving-doubling in pieces: <i>gloo</i> over sockets. */
  PIPELINED_HALVING_DOUBLING("pipelined-halving-doubling"),
  /** Shared memory within hosts, sockets between them: <i>gloo</i> on several hosts. */
  TWO_LEVEL("two-level");

  private final String label;

  AllReduceAlgorithm(String label) {
    this.label = label;
  }

  /** Returns the name in messages, and at the end of {@link ProcessGroup#usageByPath}'s keys. */
  public String label() {
    return label;
  }
}
