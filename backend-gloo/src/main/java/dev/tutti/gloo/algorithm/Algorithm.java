package dev.tutti.gloo.algorithm;

import java.util.Arrays;
import java.util.Optional;

/** Names the algorithms that ranks of Tutti choose from. */
public enum Algorithm {
  /** {@link RingAllReduce}, {@link RingReduce}, {@link RingAllGather}. */
  RING("ring"),
  /** {@link RecursiveDoublingAllReduce}. */
  RECURSIVE_DOUBLING("recursive-doubling"),
  /** {@link HalvingDoublingAllReduce}. */
  HALVING_DOUBLING("halving-doubling"),
  /** {@link HalvingDoublingAllReduce}, in pieces of 1 MiB. */
  PIPELINED_HALVING_DOUBLING("pipelined-halving-doubling"),
  /** {@link BinomialReduce}, {@link BinomialBroadcast}. */
  BINOMIAL("binomial"),
  /** {@link ChainBroadcast}. */
  CHAIN("chain"),
  /** {@link BruckAllGather}. */
  BRUCK("bruck"),
  /** {@link PairwiseReduceScatter}. */
  PAIRWISE("pairwise"),
  /** An all-reduce, of which each rank keeps its part. */
  ALL_REDUCE("all-reduce");

  private final String label;

  Algorithm(String label) {
    this.label = label;
  }

  /** Returns the name in settings and reports. */
  public String label() {
    return label;
  }

  static Optional<Algorithm> of(String label) {
    return Arrays.stream(values()).filter(value -> value.label.equals(label)).findFirst();
  }
}
