package dev.tutti;

/**
 * Names the algorithms of an all-reduce that can be asked for by {@link
 * AllReduceOptions#withAlgorithm} (c10d: {@code AllReduceAlgo}). Each backend has some of them.
 */
public enum AllReduceAlgorithm {
  /** Whatever the backend takes to be the fastest. */
  AUTO("auto"),
  /** Everything goes to every rank in one step: <i>cuda</i>, and <i>gloo</i> in shared memory. */
  ONE_SHOT("one-shot"),
  /** Parts go to who reduces them, then results to all: <i>cuda</i>. */
  TWO_SHOT("two-shot"),
  /** As two-shot, a chunk at a time: <i>cuda</i>. */
  CHUNKS("chunks"),
  /** Through memory that all ranks share, in pieces: <i>gloo</i> in shared memory. */
  STAGED("staged"),
  /** Ranks read each other's tensors where they are: <i>gloo</i> in shared memory. */
  DIRECT("direct"),
  /** Ranks write results into each other's symmetric memory: <i>gloo</i> in shared memory. */
  SYMMETRIC("symmetric"),
  /** Gloo's ring: <i>gloo</i> over sockets, with ranks of PyTorch too. */
  RING("ring"),
  /** Whole tensors between pairs of ranks: <i>gloo</i> over sockets. */
  RECURSIVE_DOUBLING("recursive-doubling"),
  /** Halves of halves between pairs of ranks, and back: <i>gloo</i> over sockets. */
  HALVING_DOUBLING("halving-doubling"),
  /** The same in pieces: <i>gloo</i> over sockets. */
  PIPELINED_HALVING_DOUBLING("pipelined-halving-doubling"),
  /** In shared memory within hosts and over sockets between them: <i>gloo</i> on several hosts. */
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
